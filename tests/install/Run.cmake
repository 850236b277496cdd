# run(COMMAND...): fails with what the command printed; else that is in `output`. Included by the scripts beside it.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# milliseconds(OUT): since the epoch.
macro(milliseconds out)
  string(TIMESTAMP ${out} "%s%f" UTC)
  math(EXPR ${out} "${${out}} / 1000")
endmacro()
