# cmake -DSOURCE=<repository> -DWORK=<folder> -DCOMPILER=<c++> [-DLAUNCHER=<program>] -P CheckSubproject.cmake
#
# Builds and runs parent/ with pagejit inside it: by add_subdirectory, then by FetchContent in the same build folder, which
# therefore compiles the library once, without optimisation. It is static here, and the second time it is installed:
# $WORK/static is what CheckConsumer.cmake takes for the static package.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/Run.cmake")
set(build "${WORK}/build")
# Not an old configuration's cache, which would hide what is new in it; objects are kept.
file(REMOVE "${build}/CMakeCache.txt")
file(REMOVE_RECURSE "${WORK}/own" "${WORK}/static")

foreach(mode IN ITEMS subdirectory fetch_content)
  set(options "")
  if(mode STREQUAL "fetch_content")
    file(REMOVE "${build}/CMakeCache.txt")
    set(options -DPAGEJIT_INSTALL=ON)
  endif()
  run(${CMAKE_COMMAND} -G Ninja -S "${CMAKE_CURRENT_LIST_DIR}/parent" -B "${build}" "-DMODE=${mode}"
    "-DPAGEJIT_SOURCE=${SOURCE}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DBUILD_SHARED_LIBS=OFF ${options})
  run(${CMAKE_COMMAND} --build "${build}" --target parent)
  run("${build}/parent")
  message("${mode}: ${output}")
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
