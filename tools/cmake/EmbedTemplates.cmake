# cmake -DROOT=<templates dir> -DFILES=<;-list> -DOUTPUT=<file.cc> -P EmbedTemplates.cmake
# Writes the template files into one source file as raw string literals.
set(text "// Generated from templates/ by tools/cmake/EmbedTemplates.cmake.\n#include \"generator/template_set.h\"\n\n")
string(APPEND text "namespace pagejit {\n\nconst TemplateSet& embedded_templates() {\n  static const TemplateSet files = {\n")
foreach(file IN LISTS FILES)
  file(READ "${ROOT}/${file}" content)
  string(APPEND text "      {\"${file}\", R\"pagejit(${content})pagejit\"},\n")
endforeach()
string(APPEND text "  };\n  return files;\n}\n\n}  // namespace pagejit\n")
file(WRITE "${OUTPUT}" "${text}")
