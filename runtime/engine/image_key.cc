#include "runtime/engine/image_key.h"

#include "runtime/metadata.h"

namespace pagejit {
namespace {

// Raised when an image of the same source would have to be read differently.
constexpr uint32_t kKeyFormat = 1;

}  // namespace

cache::KeyIngredients key_ingredients(const KernelSource& source, const Compiler& compiler) {
  cache::KeyIngredients ingredients;
  ingredients.format_version = kKeyFormat;
  ingredients.text = source.text;
  ingredients.options = compiler.options(source.target);
  ingredients.target = source.target.to_string();
  ingredients.parameter_abi = parameter_abi(source.config);
  return ingredients;
}

}  // namespace pagejit
