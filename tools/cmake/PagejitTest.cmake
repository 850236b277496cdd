# Tests are compiled quickly, not to run quickly: what takes time in them are the library and the references, which have
# the options of the build. (The gpu preset has them small instead.) Each program takes GoogleMock's headers from one
# precompiled file.
set(PAGEJIT_TEST_OPTIONS -O0 CACHE STRING "Compiler options of the tests, after those of the build type")
find_package(GTest CONFIG REQUIRED)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled_test_headers.cc" CONTENT "// see PagejitTest.cmake\n")
add_library(pagejit_test_headers OBJECT "${PROJECT_BINARY_DIR}/precompiled_test_headers.cc")
target_link_libraries(pagejit_test_headers PRIVATE pagejit_flags GTest::gmock)
target_compile_options(pagejit_test_headers PRIVATE ${PAGEJIT_TEST_OPTIONS})
target_precompile_headers(pagejit_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)

set(PAGEJIT_TEST_OBJECTS "")
if(PAGEJIT_SANITIZE MATCHES "address")
  add_library(pagejit_asan_fork OBJECT "${PROJECT_SOURCE_DIR}/tests/asan_fork.cc")
  target_link_libraries(pagejit_asan_fork PRIVATE pagejit_flags)
  set(PAGEJIT_TEST_OBJECTS pagejit_asan_fork)
endif()

# pagejit_test(NAME SOURCES a_test.cc... [LIBRARIES target...] [LABELS label...] [ENVIRONMENT K=V...] [TIMEOUT seconds])
#
# One GoogleTest program whose tests ctest runs one by one. Every test carries the name of its folder below tests/ as a
# label; tests/README.md lists the others.
function(pagejit_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBRARIES;LABELS;ENVIRONMENT" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_SOURCES)
    message(FATAL_ERROR "pagejit_test(${name}): needs SOURCES; not understood: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 480)  # ends what hangs: many times what any test takes, on a slow machine too
  endif()
  include(GoogleTest)
  get_filename_component(folder "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} ${PAGEJIT_TEST_OBJECTS} pagejit_flags GTest::gmock_main)
  target_precompile_headers(${name} REUSE_FROM pagejit_test_headers)
  target_compile_options(${name} PRIVATE ${PAGEJIT_TEST_OPTIONS})
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST
                       DISCOVERY_TIMEOUT 60)

  # gtest_discover_tests flattens lists in its PROPERTIES, so ctest sets them from a file of its own.
  set(labels ${folder} ${ARG_LABELS})
  set(properties_file "${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake")
  # Generated, so that the environment may name the files of targets.
  file(GENERATE OUTPUT "${properties_file}" CONTENT
"foreach(test IN LISTS ${name}_TESTS)
  set_tests_properties(\"\${test}\" PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS \"${labels}\"
                       ENVIRONMENT \"${ARG_ENVIRONMENT}\")
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${properties_file}")
endfunction()
