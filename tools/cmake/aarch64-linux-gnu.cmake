# Cross-builds for aarch64 Linux (GH200, GB200, Jetson) with Debian's compiler, g++-aarch64-linux-gnu. `tools/setup.sh --cross`
# installs it and unpacks what pagejit is built with in .deps/aarch64; other roots: -DCMAKE_FIND_ROOT_PATH=DIR.
#
#   cmake --preset aarch64                                                    # for tests: runs under qemu-user
#   cmake --preset release --toolchain tools/cmake/aarch64-linux-gnu.cmake -B build/grace      # optimised
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

if(NOT CMAKE_FIND_ROOT_PATH)
  get_filename_component(CMAKE_FIND_ROOT_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.deps/aarch64" ABSOLUTE)
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# Programs of the target run under qemu-user where it is installed; the cross compiler brings their C and C++ library, the root
# what they open at run time.
find_program(PAGEJIT_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
mark_as_advanced(PAGEJIT_QEMU_AARCH64)
if(PAGEJIT_QEMU_AARCH64)
  list(GET CMAKE_FIND_ROOT_PATH 0 _root)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${PAGEJIT_QEMU_AARCH64}" -L /usr/aarch64-linux-gnu
    -E "LD_LIBRARY_PATH=${_root}/usr/lib/aarch64-linux-gnu")
endif()
