# cmake "-DPROGRAM=<program;arguments>" -P ExpectBroken.cmake
#
# Passes if the program, told to use a wrong block table, notices: exit code 1 and the first wrong phase in words.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${PROGRAM} --break block-table
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")
if(NOT result EQUAL 1)
  message(FATAL_ERROR "the exit code is ${result}, not 1")
endif()
if(NOT output MATCHES "prefill[^\n]*WRONG: step 0, sequence 0, token [0-9]+, head [0-9]+, element [0-9]+ is ")
  message(FATAL_ERROR "prefill was not found to be wrong")
endif()
