# cmake -DSOURCE=<repository> -DBUILD=<build folder> -DWORK=<folder> -DCOMPILER=<c++> -DBUILD_TYPE=<CMake's>
#       -DFOLDERS=<;-list> -P CheckStatic.cmake
#
# Configures all of pagejit with BUILD_SHARED_LIBS=OFF, builds what is installed, installs it and has CheckInstalled.cmake
# look at it. Compiled are only what BUILD, the same with a shared library, has not compiled (take_object.sh).
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/Run.cmake")
unset(ENV{DESTDIR})
set(ENV{OBJECTS} "${BUILD}")
file(REMOVE_RECURSE "${WORK}")
run(${CMAKE_COMMAND} -G Ninja -S "${SOURCE}" -B "${WORK}/build" "-DCMAKE_CXX_COMPILER=${COMPILER}"
  "-DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CURRENT_LIST_DIR}/take_object.sh"
  "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}" -DBUILD_SHARED_LIBS=OFF)
run(${CMAKE_COMMAND} --build "${WORK}/build" --target pagejit_installable)
run(${CMAKE_COMMAND} --install "${WORK}/build" --prefix "${WORK}/installed")
run(${CMAKE_COMMAND} "-DPREFIX=${WORK}/installed" "-DFOLDERS=${FOLDERS};${WORK}" -DSTATIC=1
  -P "${CMAKE_CURRENT_LIST_DIR}/CheckInstalled.cmake")
