# cmake -DBUILD=<build folder> -DPREFIX=<folder> -P InstallPagejit.cmake: installs anew, so that nothing of an earlier
# version stays behind.
cmake_minimum_required(VERSION 3.25)
unset(ENV{DESTDIR})
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND ${CMAKE_COMMAND} --install "${BUILD}" --prefix "${PREFIX}" COMMAND_ERROR_IS_FATAL ANY)
