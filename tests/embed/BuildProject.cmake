# cmake -DSOURCE=<folder> -DPREFIX=<installed pagejit> -DLIBDIR=<its libraries> -DBINARY=<folder> [-DPROGRAM=<name>]
#       [-DBUILD_TYPE=<CMake's>] -P BuildProject.cmake
#
# Builds one of the projects in a copy of its own, so that it can use nothing of this tree but what is installed: by CMake,
# or by cargo where it has a Cargo.toml. The projects ask for warnings, which are errors here. Leaves the program PROGRAM
# (paged_decoder) in BINARY. Where there is nothing to build (Python), BINARY is the copy.
cmake_minimum_required(VERSION 3.25)
foreach(variable IN ITEMS SOURCE PREFIX LIBDIR BINARY)
  if(NOT ${variable})
    message(FATAL_ERROR "-D${variable}= is missing")
  endif()
endforeach()
if(NOT PROGRAM)
  set(PROGRAM paged_decoder)
endif()
if(NOT BUILD_TYPE)
  set(BUILD_TYPE Debug)
endif()

if(NOT EXISTS "${SOURCE}/Cargo.toml" AND NOT EXISTS "${SOURCE}/CMakeLists.txt")
  file(REMOVE_RECURSE "${BINARY}")
  file(COPY "${SOURCE}/" DESTINATION "${BINARY}" PATTERN __pycache__ EXCLUDE)
  return()
endif()

if(EXISTS "${SOURCE}/Cargo.toml")
  find_program(cargo cargo)
  if(NOT cargo)
    message(FATAL_ERROR "there is no cargo on the PATH; tools/setup.sh installs Debian's")
  endif()
endif()
execute_process(COMMAND mktemp -d -t pagejit-embed.XXXXXX OUTPUT_VARIABLE scratch OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
file(COPY "${SOURCE}/" DESTINATION "${scratch}/source" PATTERN target EXCLUDE)

if(EXISTS "${SOURCE}/Cargo.toml")
  # The linker finds the library while building, and the loader when the program runs.
  set(ENV{RUSTFLAGS} "-L native=${LIBDIR} -C link-arg=-Wl,-rpath,${LIBDIR}")
  execute_process(COMMAND ${cargo} build --offline --target-dir "${scratch}/build"
                  WORKING_DIRECTORY "${scratch}/source" RESULT_VARIABLE result)
  set(program "${scratch}/build/debug/${PROGRAM}")
else()
  execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S "${scratch}/source" -B "${scratch}/build"
                          "-DCMAKE_PREFIX_PATH=${PREFIX}" -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
                          -DCMAKE_COMPILE_WARNING_AS_ERROR=ON
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build "${scratch}/build" RESULT_VARIABLE result)
  set(program "${scratch}/build/${PROGRAM}")
endif()
if(result EQUAL 0)
  file(COPY "${program}" DESTINATION "${BINARY}")
endif()
file(REMOVE_RECURSE "${scratch}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} was not built: ${result}")
endif()
