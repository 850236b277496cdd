# What `cmake --install` installs. Included by the top CMakeLists.txt where PAGEJIT_INSTALL is on.
#
#   component    what
#   runtime      libpagejit.so.X.Y, the licence
#   development  headers, libpagejit.so or libpagejit.a, find_package(pagejit CONFIG), pkg-config's pagejit.pc
#   tools        the command with its manual page and completions, and the emulator
#
# Nothing installed holds an absolute path: the tree may be moved. tests/install checks it.
include(CMakePackageConfigHelpers)

# Sets `out` to `folder` relative to the prefix: package builders may give absolute folders below it.
function(pagejit_below_prefix out folder)
  if(IS_ABSOLUTE "${folder}")
    file(RELATIVE_PATH folder "${CMAKE_INSTALL_PREFIX}" "${folder}")
  endif()
  set(${out} "${folder}" PARENT_SCOPE)
endfunction()

# What the static library leaves to the program, for pkg-config --static.
set(PAGEJIT_PC_REQUIRES_PRIVATE "")
set(PAGEJIT_PC_LIBS_PRIVATE "")
if(PAGEJIT_LIBRARY_TYPE STREQUAL "STATIC")
  set(PAGEJIT_PC_REQUIRES_PRIVATE " libcrypto >= 3.0")
  set(PAGEJIT_PC_LIBS_PRIVATE " -lstdc++ -lm -ldl -pthread")
endif()

# pagejit_install_rules(NAME LIBDIR folder RUNTIME component DEVELOPMENT component TOOLS component
#                       ZSH folder LICENSE_NAME name [APART])
# All rules for one layout. With APART they stay out of a plain `cmake --install`; then each component has a folder of
# documents of its own, as Debian's packages do.
function(pagejit_install_rules name)
  cmake_parse_arguments(ARG "APART" "LIBDIR;RUNTIME;DEVELOPMENT;TOOLS;ZSH;LICENSE_NAME" "" ${ARGN})
  set(apart "")
  if(ARG_APART)
    set(apart EXCLUDE_FROM_ALL)
  endif()
  pagejit_below_prefix(libdir "${ARG_LIBDIR}")
  pagejit_below_prefix(includedir "${CMAKE_INSTALL_INCLUDEDIR}")
  pagejit_below_prefix(datadir "${CMAKE_INSTALL_DATADIR}")
  pagejit_below_prefix(bindir "${CMAKE_INSTALL_BINDIR}")
  pagejit_below_prefix(mandir "${CMAKE_INSTALL_MANDIR}")
  set(generated "${PROJECT_BINARY_DIR}/package/${name}")

  # The library.
  install(TARGETS pagejit EXPORT pagejit-${name}
    LIBRARY DESTINATION "${libdir}" COMPONENT ${ARG_RUNTIME} NAMELINK_COMPONENT ${ARG_DEVELOPMENT} ${apart}
    ARCHIVE DESTINATION "${libdir}" COMPONENT ${ARG_DEVELOPMENT} ${apart}
    INCLUDES DESTINATION "${includedir}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/runtime/include/pagejit" DESTINATION "${includedir}"
    COMPONENT ${ARG_DEVELOPMENT} ${apart} FILES_MATCHING PATTERN "*.h")

  # find_package(pagejit CONFIG).
  set(configdir "${libdir}/cmake/pagejit")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/tools/cmake/pagejit-config.cmake.in"
    "${generated}/pagejit-config.cmake" INSTALL_DESTINATION "${configdir}"
    NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  # While the major version is 0 each minor version may break callers.
  write_basic_package_version_file("${generated}/pagejit-config-version.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${generated}/pagejit-config.cmake" "${generated}/pagejit-config-version.cmake"
    DESTINATION "${configdir}" COMPONENT ${ARG_DEVELOPMENT} ${apart})
  install(EXPORT pagejit-${name} NAMESPACE pagejit:: FILE pagejit-targets.cmake
    DESTINATION "${configdir}" COMPONENT ${ARG_DEVELOPMENT} ${apart})

  # pkg-config.
  file(RELATIVE_PATH pc_to_prefix "/${libdir}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
  configure_file("${PROJECT_SOURCE_DIR}/tools/cmake/pagejit.pc.in" "${generated}/pagejit.pc" @ONLY)
  install(FILES "${generated}/pagejit.pc" DESTINATION "${libdir}/pkgconfig"
    COMPONENT ${ARG_DEVELOPMENT} ${apart})

  # The emulator belongs to the tools: a program that serves models never opens it. Its name has no version, so it would
  # also keep the libraries of two versions from lying in one folder.
  install(TARGETS pagejit_emulator LIBRARY DESTINATION "${libdir}" COMPONENT ${ARG_TOOLS} ${apart})
  if(TARGET pagejit_command)
    install(TARGETS pagejit_command RUNTIME DESTINATION "${bindir}" COMPONENT ${ARG_TOOLS} ${apart})
  endif()

  if(TARGET pagejit_documents)
    get_target_property(folder pagejit_documents PAGEJIT_FOLDER)
    install(FILES "${folder}/pagejit.1" DESTINATION "${mandir}/man1" COMPONENT ${ARG_TOOLS} ${apart})
    install(FILES "${folder}/pagejit.bash" DESTINATION "${datadir}/bash-completion/completions"
      RENAME pagejit COMPONENT ${ARG_TOOLS} ${apart})
    install(FILES "${folder}/_pagejit" DESTINATION "${datadir}/${ARG_ZSH}" COMPONENT ${ARG_TOOLS} ${apart})
    install(FILES "${folder}/pagejit.fish" DESTINATION "${datadir}/fish/vendor_completions.d"
      COMPONENT ${ARG_TOOLS} ${apart})
  endif()

  # Licence and documents.
  if(ARG_APART)
    foreach(component IN ITEMS ${ARG_RUNTIME} ${ARG_DEVELOPMENT} ${ARG_TOOLS})
      install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${datadir}/doc/${component}"
        RENAME "${ARG_LICENSE_NAME}" COMPONENT ${component} ${apart})
    endforeach()
    set(documents "${datadir}/doc/${ARG_DEVELOPMENT}")
  else()
    set(documents "${datadir}/doc/pagejit")
    install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${documents}"
      RENAME "${ARG_LICENSE_NAME}" COMPONENT ${ARG_RUNTIME})
  endif()
  install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
    DESTINATION "${documents}" COMPONENT ${ARG_DEVELOPMENT} ${apart})
endfunction()

pagejit_install_rules(usual
  LIBDIR "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME runtime DEVELOPMENT development TOOLS tools
  ZSH zsh/site-functions
  LICENSE_NAME LICENSE)

# All that an installation needs, and nothing else.
add_custom_target(pagejit_installable DEPENDS pagejit pagejit_emulator)
if(TARGET pagejit_command)
  add_dependencies(pagejit_installable pagejit_command)
endif()
if(TARGET pagejit_documents)
  add_dependencies(pagejit_installable pagejit_documents)
endif()
if(PAGEJIT_IS_TOP_LEVEL AND PAGEJIT_LIBRARY_TYPE STREQUAL "SHARED")
  include(PagejitPackages)
endif()
