#include "tests/sweep/edited_engine.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "generator/renderer.h"

namespace pagejit {
namespace {

struct EditedTemplates {
  TemplateSet templates = embedded_templates();
  std::string text;  // of the edited file
};

}  // namespace

std::shared_ptr<Engine> make_edited_engine(EngineOptions options, const TemplateEdit& edit,
                                           decltype(EngineDependencies::plan) plan) {
  auto edited = std::make_shared<EditedTemplates>();
  if (!edit.file.empty()) {
    std::string_view& file = edited->templates.at(edit.file);
    edited->text = file;
    const size_t at = edited->text.find(edit.from);
    EXPECT_NE(at, std::string::npos) << edit.file << " has no \"" << edit.from << "\"";
    if (at == std::string::npos) return nullptr;
    EXPECT_EQ(edited->text.find(edit.from, at + 1), std::string::npos)
        << edit.file << " has \"" << edit.from << "\" twice";
    edited->text.replace(at, edit.from.size(), edit.to);
    file = edited->text;
  }
  options.disk_cache = false;
  EngineDependencies dependencies = default_dependencies(options);
  if (plan != nullptr) dependencies.plan = std::move(plan);
  dependencies.render = [edited](const AnyConfig& config) {
    return render(config, edited->templates);
  };
  Result<std::shared_ptr<Engine>> made = create_engine(std::move(options), std::move(dependencies));
  EXPECT_TRUE(made.is_ok()) << made.status().to_string();
  return made ? *made : nullptr;
}

}  // namespace pagejit
