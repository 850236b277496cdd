# cmake "-DPROGRAM=<program;arguments>" -DFAULT=<of --break> -P ExpectBroken.cmake
#
# Passes if the program, told to make a fault, notices where it is made: exit code 1, all lines before are ok, and the first
# that is not is the one that the fault is for.
cmake_minimum_required(VERSION 3.25)
set(wrong "WRONG: step [0-9]+, sequence")
set(first_block-table "prefill  .*${wrong} 0, token [0-9]+, head [0-9]+, element [0-9]+ is ")
# Results are right without sharing: only the number of blocks tells. One of those that are taken is used again at once, so
# that swapping in goes where the sequence was, which must be told too.
set(first_fork "fork  +6 blocks in use: WRONG")
set(later_fork "swap in  +in other blocks than before: WRONG")
set(first_copy "fork, then copy on write  .*${wrong} 0,")
set(first_grow "one swapped out  .*WRONG: step 4, sequence 0,")
set(first_swap "swapped in again  .*${wrong} 0,")
if(NOT first_${FAULT})
  message(FATAL_ERROR "-DFAULT=${FAULT} is not known")
endif()

execute_process(COMMAND ${PROGRAM} --break ${FAULT}
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")
if(NOT result EQUAL 1)
  message(FATAL_ERROR "the exit code is ${result}, not 1")
endif()
string(REGEX MATCH "[^\n]*WRONG[^\n]*" first "${output}")
if(NOT first MATCHES "^${first_${FAULT}}")
  message(FATAL_ERROR "the first wrong line is not: ${first_${FAULT}}")
endif()
if(NOT output MATCHES "\n${later_${FAULT}}")
  message(FATAL_ERROR "there is no line: ${later_${FAULT}}")
endif()
