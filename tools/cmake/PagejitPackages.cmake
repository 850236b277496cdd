# Debian packages by CPack: `cpack` in the build folder of a shared, optimised build makes
#
#   libpagejit0.1     the library
#   libpagejit-dev    headers, find_package, pkg-config
#   pagejit           the command with its manual page and completions, and the emulator
#
# Their layout, with libraries in lib/<architecture>, is installed beside the usual one's rules, for CPack alone.
set(_library "libpagejit${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(_architecture "${CMAKE_LIBRARY_ARCHITECTURE}")
if(NOT _architecture)
  return()  # not Debian, nor one of its kin
endif()
pagejit_install_rules(debian
  LIBDIR "lib/${_architecture}"
  RUNTIME ${_library} DEVELOPMENT libpagejit-dev TOOLS pagejit
  ZSH zsh/vendor-completions
  LICENSE_NAME copyright
  APART)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pagejit)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_CONTACT "pagejit developers")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${_library} libpagejit-dev pagejit)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
if(_architecture STREQUAL "aarch64-linux-gnu")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)  # CPack would take the architecture of the machine that it runs on
endif()

# component, section, description
function(_pagejit_package component section description)
  string(TOUPPER "${component}" upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${component} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${PROJECT_DESCRIPTION}: ${description}" PARENT_SCOPE)
endfunction()
_pagejit_package(${_library} libs "the library")
_pagejit_package(libpagejit-dev libdevel "headers, CMake and pkg-config files")
_pagejit_package(pagejit utils "the command, and the emulator of a GPU")
string(TOUPPER "${_library}" _upper)
set(CPACK_DEBIAN_LIBPAGEJIT-DEV_PACKAGE_DEPENDS "${_library} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_${_upper}_PACKAGE_SUGGESTS "pagejit")
set(CPACK_DEBIAN_PAGEJIT_PACKAGE_SUGGESTS "g++, libcurl4, libsodium23")
include(CPack)
