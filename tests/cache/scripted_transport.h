// ScriptedTransport: an HttpTransport without a network: a store of URLs, or whatever a test wants
// answered. Thread-safety: as HttpTransport's; the fields are set before requests are made.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cache/http_transport.h"

namespace pagejit::cache {

inline HttpAnswer answer_with(int status, std::string body = {}) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = std::move(body);
  return answer;
}

inline HttpAnswer answer_failed(HttpFailure failure) {
  HttpAnswer answer;
  answer.failure = failure;
  answer.reason = "the script says so";
  return answer;
}

class ScriptedTransport : public HttpTransport {
 public:
  struct Sent {
    HttpMethod method;
    std::string url;
    HttpRequest request;  // its body is not kept
  };

  // Null: serves `files`, and puts there what is uploaded.
  std::function<HttpAnswer(const HttpRequest&)> script;

  HttpAnswer send(const HttpRequest& request) override {
    {
      const std::lock_guard lock(mutex_);
      sent_.push_back({request.method, request.url, request});
      sent_.back().request.body = {};
    }
    return script ? script(request) : serve(request);
  }

  HttpAnswer serve(const HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    if (request.method == HttpMethod::kPut) {
      if (request.if_none_match && files_.contains(request.url)) return answer_with(412);
      files_[request.url] = request.body;
      return answer_with(201);
    }
    const auto found = files_.find(request.url);
    if (found == files_.end()) return answer_with(404);
    if (request.method == HttpMethod::kHead) return answer_with(200);
    if (found->second.size() > request.max_body_bytes) return answer_failed(HttpFailure::kTooLarge);
    return answer_with(200, found->second);
  }

  void put(const std::string& url, std::string bytes) {
    const std::lock_guard lock(mutex_);
    files_[url] = std::move(bytes);
  }
  std::map<std::string, std::string> files() const {
    const std::lock_guard lock(mutex_);
    return files_;
  }
  std::vector<Sent> sent() const {
    const std::lock_guard lock(mutex_);
    return sent_;
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, std::string> files_;
  std::vector<Sent> sent_;
};

}  // namespace pagejit::cache
