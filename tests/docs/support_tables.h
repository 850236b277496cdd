// The tables of the support matrix: what supports() answers, as markdown. Thread-safety: pure
// functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "pagejit/spec.h"

namespace pagejit::docs {

inline constexpr DataType kDataTypes[] = {
    DataType::kFloat16,    DataType::kBFloat16, DataType::kFloat32, DataType::kFloat8E4m3,
    DataType::kFloat8E5m2, DataType::kInt8,     DataType::kInt4};
inline constexpr QueryLengths kQueries[] = {QueryLengths::kOne, QueryLengths::kFew,
                                            QueryLengths::kMany, QueryLengths::kShared};
inline constexpr const char* kQueryNames[] = {"one", "few", "many", "shared"};

// The variants of each architecture, the plain one first, and the emulator's target.
std::vector<std::vector<Target>> all_targets();

std::string join(const std::vector<std::string>& words);  // "a, b"

// A spec with K and V of this type: q and the result go with them, and scales where they need them.
KernelSpec spec_of(DataType kv_dtype, QueryLengths queries);
bool is_served(const KernelSpec& spec, const Target& target);

// Multi-head latent attention in DeepSeek's sizes.
void make_latent(KernelSpec& spec);

// What a spec may ask for beside types and sizes.
struct Feature {
  const char* name;  // as in the canonical text
  void (*apply)(KernelSpec& spec);
  char choice;  // features of one letter exclude each other by setting one field; ' ': a switch
  const char* tests;  // that look at it closely: `Suite.Name`, "*" for any
};
std::span<const Feature> features();

// Tables for one target: head sizes, types of q and the result, features by type.
std::string head_size_table(const Target& target);
std::string type_table(const Target& target);
std::string feature_table(const Target& target);

std::string feature_tests();      // a row for each feature: its tests
std::string combination_table();  // each feature with each other one

// A row for each kind of kernel around attention.
std::string family_table(const std::vector<std::vector<Target>>& targets);

}  // namespace pagejit::docs
