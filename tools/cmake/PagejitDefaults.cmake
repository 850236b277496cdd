# Flags and warnings of pagejit's own code, as interface targets; nothing global.
if(PAGEJIT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

# Each source has names of its own, whatever a project around this one does with its sources.
set(CMAKE_UNITY_BUILD OFF)

add_library(pagejit_flags INTERFACE)
target_compile_features(pagejit_flags INTERFACE cxx_std_20)
target_include_directories(pagejit_flags INTERFACE "${PROJECT_SOURCE_DIR}"
                                                   "${PROJECT_SOURCE_DIR}/runtime/include")
option(PAGEJIT_WARNINGS_AS_ERRORS "Stop at compiler warnings" ${PAGEJIT_IS_TOP_LEVEL})
target_compile_options(pagejit_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow
                                               -Wnon-virtual-dtor)
# The tests and tools use internals of the library. They link them statically, or, where many programs have to be small,
# as one shared library, from which nothing is hidden then.
option(PAGEJIT_SHARED_INTERNALS "Tests and tools share one library of internals" OFF)
if(NOT PAGEJIT_SHARED_INTERNALS)
  target_compile_options(pagejit_flags INTERFACE -fvisibility=hidden -fvisibility-inlines-hidden)
endif()
if(PAGEJIT_WARNINGS_AS_ERRORS)
  target_compile_options(pagejit_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # To clang's -Wconversion also signs belong, to GCC's in C++ not: what is clean with one is to be with the other.
  target_compile_options(pagejit_flags INTERFACE -Wno-sign-conversion)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # At -O3 and under the sanitizers GCC 12 reports std::optional's own members and std::string's own copies (its bug
  # 105651). The sanitizers see real cases.
  target_compile_options(pagejit_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(PAGEJIT_SANITIZE)
  target_compile_options(pagejit_flags INTERFACE -fsanitize=${PAGEJIT_SANITIZE}
                                                 -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(pagejit_flags INTERFACE -fsanitize=${PAGEJIT_SANITIZE})
endif()

# What is installed names no folder of the machine it was built on, neither in __FILE__ nor in debug information. A Debug
# build, which is for a debugger on that machine, keeps them.
function(pagejit_hide_folders target)
  target_compile_options(${target} PRIVATE
    $<$<NOT:$<CONFIG:Debug>>:-ffile-prefix-map=${PROJECT_BINARY_DIR}=build>
    $<$<NOT:$<CONFIG:Debug>>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>)
  # In a project around this one, compilers are started in that one's build folder. The last map that fits counts.
  if(NOT PAGEJIT_IS_TOP_LEVEL)
    target_compile_options(${target} PRIVATE
      $<$<NOT:$<CONFIG:Debug>>:-ffile-prefix-map=${CMAKE_BINARY_DIR}=build>)
  endif()
endfunction()

# Adds the object library of one folder. Every source is listed by the caller.
function(pagejit_object_library name)
  add_library(${name} OBJECT ${ARGN})
  target_link_libraries(${name} PUBLIC pagejit_flags)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  # So that a library is linked without what only the tools or the tests use.
  target_compile_options(${name} PRIVATE -ffunction-sections -fdata-sections)
  pagejit_hide_folders(${name})
endfunction()

# pagejit_cuda_headers, for the folders that include cuda.h.
include(PagejitCuda)
