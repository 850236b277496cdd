# cmake -DSOURCE=<repository> -DOBJECTS=<build folder> -DWORK=<folder> -DCOMPILER=<c++> -P CheckSubproject.cmake
#
# Builds and runs parent/ with pagejit inside it: by add_subdirectory, shared (as it is where nothing is said) and static,
# then by FetchContent, in one build folder. Of the library's sources those are compiled there that have debug information or
# see fmt, which the parent has too; the other objects are those of OBJECTS, if they are called the same (take_object.sh).
# The last one is static and installed: $WORK/static is what CheckConsumer.cmake takes for the static package. It names no
# folder of here.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/Run.cmake")
set(build "${WORK}/build")
set(ENV{OBJECTS} "${OBJECTS}")
set(ENV{BELOW} "_deps/pagejit-build")
set(ENV{COMPILED} "/(c_api/attention|format|logger|optional/.*)\\.cc\\.o$")
file(REMOVE_RECURSE "${WORK}/own" "${WORK}/static")

foreach(case IN ITEMS shared_subdirectory static_subdirectory static_fetch_content)
  string(REGEX MATCH "subdirectory|fetch_content" mode ${case})
  set(options "")
  # Not an earlier configuration's cache, which would hide what is new in it; objects are kept.
  file(REMOVE "${build}/CMakeCache.txt")
  if(case MATCHES "static")
    list(APPEND options -DBUILD_SHARED_LIBS=OFF)
  endif()
  if(mode STREQUAL "fetch_content")
    list(APPEND options -DPAGEJIT_INSTALL=ON)
  endif()
  run(${CMAKE_COMMAND} -G Ninja -S "${CMAKE_CURRENT_LIST_DIR}/parent" -B "${build}" "-DMODE=${mode}"
    "-DPAGEJIT_SOURCE=${SOURCE}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CURRENT_LIST_DIR}/take_object.sh"
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O0 ${options})
  run(${CMAKE_COMMAND} --build "${build}" --target parent)
  run("${build}/parent")
  message("${case}: ${output}")
  run(readelf -d "${build}/parent")
  if(case MATCHES "shared" AND NOT output MATCHES "libpagejit\\.so\\.0\\.1\\]" OR case MATCHES "static" AND output MATCHES "libpagejit")
    message(FATAL_ERROR "${case}: the program was linked otherwise:\n${output}")
  endif()
  if(mode STREQUAL "subdirectory")
    # All that it installs is its own.
    run(${CMAKE_COMMAND} --install "${build}" --prefix "${WORK}/own")
    file(GLOB_RECURSE installed RELATIVE "${WORK}/own" "${WORK}/own/*")
    if(NOT installed STREQUAL "bin/parent")
      message(FATAL_ERROR "installed without being asked: ${installed}")
    endif()
  endif()
endforeach()
foreach(component IN ITEMS runtime development)
  run(${CMAKE_COMMAND} --install "${build}" --prefix "${WORK}/static" --component ${component})
endforeach()
# Of the build folder also what the source folder's name would leave of it, should it lie in that.
get_filename_component(name "${WORK}" NAME)
names_no_folder("${WORK}/static" "${SOURCE}" "${build}" "${name}/build")
