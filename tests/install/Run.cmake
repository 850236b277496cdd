# Included by the scripts beside it.

# run(COMMAND...): fails with what the command printed; else that is in `output`.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# names_no_folder(TREE folder...): no file below TREE names one of the folders, binaries and debug information included.
function(names_no_folder tree)
  foreach(folder IN LISTS ARGN)
    execute_process(COMMAND grep -rlaF -e "${folder}" "${tree}" OUTPUT_VARIABLE found RESULT_VARIABLE result)
    if(NOT result EQUAL 1)
      message(SEND_ERROR "${folder} is named in:\n${found}")
    endif()
  endforeach()
endfunction()

# milliseconds(OUT): since the epoch.
macro(milliseconds out)
  string(TIMESTAMP ${out} "%s%f" UTC)
  math(EXPR ${out} "${${out}} / 1000")
endmacro()
