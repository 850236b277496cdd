# cmake -DPREFIX=<installed tree> -DFOLDERS=<;-list> [-DSTATIC=1] -P CheckInstalled.cmake
#
# No installed file names one of FOLDERS (the source and build folders), binaries and debug information included; the
# library (but a static one) and the command need exactly the libraries that runtime/README.md lists; and the command works
# from a moved tree, with the emulator that lies in it.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/Run.cmake")

file(GLOB_RECURSE files RELATIVE "${PREFIX}" "${PREFIX}/*")
foreach(wanted IN ITEMS bin/pagejit include/pagejit/engine.h libpagejit-emulator.so pagejit.pc pagejit-config.cmake
    pagejit-config-version.cmake LICENSE man/man1/pagejit.1 bash-completion/completions/pagejit
    zsh/site-functions/_pagejit fish/vendor_completions.d/pagejit.fish)
  if(NOT ";${files};" MATCHES "[;/]${wanted};")
    message(SEND_ERROR "${wanted} is not installed")
  endif()
endforeach()
names_no_folder("${PREFIX}" ${FOLDERS})

# needed(FILE OUT): the libraries that it names; the loader's name depends on the machine.
function(needed file out)
  run(readelf -d "${file}")
  if(output MATCHES "RPATH|RUNPATH")
    message(SEND_ERROR "${file} has a search path:\n${output}")
  endif()
  string(REGEX REPLACE "[][]" " " output "${output}")  # brackets would bind elements of a list together
  string(REGEX MATCHALL "Shared library: +[^ \n]+" names "${output}")
  list(TRANSFORM names REPLACE "^.* " "")
  list(TRANSFORM names REPLACE "^ld-linux.*$" "ld-linux")
  list(SORT names)
  set(${out} "${names}" PARENT_SCOPE)
endfunction()
if(STATIC)
  file(GLOB_RECURSE shared "${PREFIX}/libpagejit.so*")
  file(GLOB_RECURSE archive "${PREFIX}/libpagejit.a")
  if(shared OR NOT archive)
    message(SEND_ERROR "not a static library: '${archive}' '${shared}'")
  endif()
  set(library "")
else()
  file(GLOB_RECURSE library "${PREFIX}/*/libpagejit.so.0.1.0")
  if(NOT library)
    message(SEND_ERROR "libpagejit.so.0.1.0 is not installed")
  endif()
endif()
foreach(file IN ITEMS ${library} "${PREFIX}/bin/pagejit")
  needed("${file}" names)
  if(NOT names STREQUAL "ld-linux;libc.so.6;libgcc_s.so.1;libm.so.6;libstdc++.so.6")
    message(SEND_ERROR "${file} needs other libraries than runtime/README.md lists: ${names}")
  endif()
endforeach()

set(moved "${PREFIX}-moved")
file(REMOVE_RECURSE "${moved}")
file(COPY "${PREFIX}/" DESTINATION "${moved}")
unset(ENV{PAGEJIT_EMULATOR})
set(ENV{PAGEJIT_DRIVER} emulator)
set(ENV{PAGEJIT_CACHE} off)
run("${moved}/bin/pagejit" doctor)
file(GLOB_RECURSE emulator "${moved}/*/libpagejit-emulator.so")
string(FIND "${output}" "emulator: ${emulator}" found)
if(found EQUAL -1)
  message(FATAL_ERROR "the emulator of the moved tree is not found:\n${output}")
endif()
file(REMOVE_RECURSE "${moved}")
