# cmake -DPREFIX=<installed tree> -DWORK=<folder> -DCOMPILER=<c++> [-DSTATIC=1] [-DMOST_SECONDS=<n>]
#       -P CheckConsumer.cmake
#
# Builds and runs consumer/ against a copy of the installed tree, since it may be moved: by find_package and by pkg-config.
# What the first takes is printed, and fails above MOST_SECONDS, twice: for a test that has the processors for itself.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/Run.cmake")
file(REMOVE_RECURSE "${WORK}")
file(COPY "${PREFIX}/" DESTINATION "${WORK}/moved here")  # a blank must not matter to find_package
file(COPY "${PREFIX}/" DESTINATION "${WORK}/moved")

foreach(attempt RANGE 1 2)
  file(REMOVE_RECURSE "${WORK}/build")
  milliseconds(begin)
  run(${CMAKE_COMMAND} -G Ninja -S "${CMAKE_CURRENT_LIST_DIR}/consumer" -B "${WORK}/build" "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_PREFIX_PATH=${WORK}/moved here" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wconversion -Werror")
  run(${CMAKE_COMMAND} --build "${WORK}/build")
  milliseconds(end)
  math(EXPR elapsed "${end} - ${begin}")
  if(NOT MOST_SECONDS OR elapsed LESS_EQUAL "${MOST_SECONDS}000")
    break()
  endif()
  message("attempt ${attempt}: ${elapsed} ms; another program may have had the processors")
endforeach()
run("${WORK}/build/consumer")
message("find_package, configured and built in ${elapsed} ms: ${output}")
if(MOST_SECONDS AND elapsed GREATER "${MOST_SECONDS}000")
  message(FATAL_ERROR "${elapsed} ms to configure and build one file are more than ${MOST_SECONDS} s")
endif()
file(GLOB_RECURSE config "${WORK}/moved/*/pagejit-config.cmake")
get_filename_component(config "${config}" DIRECTORY)
# Another minor version may differ in everything while the major one is 0.
foreach(version IN ITEMS 0.0 0.2 1.0)
  file(WRITE "${WORK}/version/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)\nproject(version LANGUAGES NONE)\n"
    "find_package(pagejit ${version} CONFIG QUIET)\nif(pagejit_FOUND)\n  message(FATAL_ERROR found)\nendif()\n"
    "if(NOT pagejit_CONSIDERED_VERSIONS)\n  message(FATAL_ERROR \"not seen\")\nendif()\n")
  run(${CMAKE_COMMAND} -G Ninja -S "${WORK}/version" -B "${WORK}/version/build" "-Dpagejit_DIR=${config}")
endforeach()

file(GLOB_RECURSE pc "${WORK}/moved/*/pagejit.pc")
get_filename_component(pkgconfig "${pc}" DIRECTORY)
get_filename_component(libdir "${pkgconfig}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} "${pkgconfig}")
set(ENV{LD_LIBRARY_PATH} "${libdir}")
set(static "")
if(STATIC)
  set(static --static)
endif()
run(pkg-config ${static} --cflags --libs pagejit)
string(STRIP "${output}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
# The headers are no system headers here: their warnings are seen too.
run("${COMPILER}" -std=c++20 -Wall -Wextra -Wconversion -Werror "${CMAKE_CURRENT_LIST_DIR}/consumer/main.cc" -o "${WORK}/by_pkg_config" ${flags})
run("${WORK}/by_pkg_config")
message("pkg-config ${static}: ${output}")
run(readelf -d "${WORK}/by_pkg_config")
if(STATIC AND output MATCHES "libpagejit")
  message(FATAL_ERROR "the static package was linked as a shared one:\n${output}")
elseif(NOT STATIC AND NOT output MATCHES "libpagejit\\.so\\.0\\.1\\]")
  message(FATAL_ERROR "the program does not name libpagejit.so.0.1:\n${output}")
endif()
