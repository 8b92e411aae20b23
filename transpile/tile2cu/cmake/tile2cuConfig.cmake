# find_package(tile2cu) finds this file in the folder that `tile2cu --cmakedir` prints.
#
#   tile2cu_add_kernels(TARGET FILE kernel.py [KERNEL name] [CHIP cuda:sm_80] [BINDINGS M=1024 ...] [LINE python]
#                       [OUTPUT_DIRECTORY dir])
#
# adds a file's kernels to a target. They are emitted at build time, again whenever the file, or one that it imports,
# changes. The project enables CUDA (or HIP); the target finds the kernels' headers and the runtime's. Which kernels
# there are is asked when CMake configures, which it does anew when the file changes.
cmake_minimum_required(VERSION 3.20)  # DEPFILE of add_custom_command, for Makefiles

find_program(tile2cu_COMMAND tile2cu HINTS ENV VIRTUAL_ENV PATH_SUFFIXES bin REQUIRED)

execute_process(
  COMMAND "${tile2cu_COMMAND}" --includes
  OUTPUT_VARIABLE tile2cu_INCLUDE_DIR OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "^-I" "" tile2cu_INCLUDE_DIR "${tile2cu_INCLUDE_DIR}")

if(NOT TARGET tile2cu::headers)
  add_library(tile2cu::headers INTERFACE IMPORTED)
  target_include_directories(tile2cu::headers INTERFACE "${tile2cu_INCLUDE_DIR}")
  target_compile_features(tile2cu::headers INTERFACE cxx_std_17)
endif()

function(tile2cu_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILE;KERNEL;CHIP;LINE;OUTPUT_DIRECTORY" "BINDINGS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_FILE)
    message(FATAL_ERROR "tile2cu_add_kernels: FILE is needed; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_filename_component(file "${arg_FILE}" ABSOLUTE)
  get_filename_component(stem "${arg_FILE}" NAME_WE)
  if(NOT arg_OUTPUT_DIRECTORY)
    set(arg_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/tile2cu/${target}/${stem}")
  endif()

  set(command "${tile2cu_COMMAND}" "${file}" -o "${arg_OUTPUT_DIRECTORY}")
  foreach(option KERNEL LINE)
    if(arg_${option})
      string(TOLOWER "--${option}" flag)
      list(APPEND command ${flag} "${arg_${option}}")
    endif()
  endforeach()
  if(arg_CHIP)
    list(APPEND command --target "${arg_CHIP}")
  endif()
  foreach(binding IN LISTS arg_BINDINGS)
    list(APPEND command -D "${binding}")
  endforeach()

  execute_process(
    COMMAND ${command} --list-outputs
    OUTPUT_VARIABLE outputs OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" outputs "${outputs}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")

  set(depfile "${CMAKE_CURRENT_BINARY_DIR}/${target}.${stem}.d")
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND ${command} -MF "${depfile}"
    DEPENDS "${file}" "${tile2cu_COMMAND}"
    DEPFILE "${depfile}"
    COMMENT "tile2cu ${arg_FILE}"
    VERBATIM)

  set(texts ${outputs})
  list(FILTER texts INCLUDE REGEX "\\.(cu|hip)$")
  target_sources(${target} PRIVATE ${texts})
  target_include_directories(${target} PUBLIC "${arg_OUTPUT_DIRECTORY}")
  target_link_libraries(${target} PUBLIC tile2cu::headers)
endfunction()
