# find_package(tile2cu) finds this file in the folder that `tile2cu --cmakedir` prints.
#
#   tile2cu_add_kernels(NAME FILE kernel.py [TARGET cuda:sm_80 ...] [KERNEL name] [DEFINES M=1024 ...] [NAME function]
#                       [STYLE tl] [LINE python] [SHIMS torch ...] [WITH_TEST] [OUTPUT_DIRECTORY dir])
#
# makes a static library of a file's kernels, NAME and tile2cu::NAME, that is compiled for the target's architecture. If
# NAME is a target already, the library is NAME_STEM_ARCHITECTURE and NAME links it: a target may have kernels for
# several architectures. With several TARGETs of one language it has each kernel for all of them, as NAME_ARCHITECTURE
# compiles it, and a dispatch that chooses by the device. The options are those of the command line; TARGET and DEFINES
# are --target and -D.
#
# The kernels are emitted at build time, again whenever the file, or one that it imports, changes; which ones there are
# is asked when CMake configures. The project enables CUDA (or HIP). The headers of the kernels are PUBLIC_HEADER files
# of the library, which install(TARGETS ... EXPORT ...) takes. WITH_TEST adds the kernels' own tests to CTest. Sources
# of SHIMS are not compiled, as their dependencies are the project's; the property TILE2CU_SHIMS of the library has them.
# The headers of CUTLASS, for STYLE cute, and of Composable Kernel, for STYLE ck, are the project's, too.
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
  cmake_parse_arguments(
    PARSE_ARGV 1 arg "WITH_TEST" "FILE;KERNEL;NAME;STYLE;LINE;OUTPUT_DIRECTORY" "TARGET;DEFINES;SHIMS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_FILE)
    message(FATAL_ERROR "tile2cu_add_kernels: FILE is needed; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TARGET)
    set(arg_TARGET cuda:sm_80)
  endif()
  get_filename_component(file "${arg_FILE}" ABSOLUTE)
  get_filename_component(stem "${arg_FILE}" NAME_WE)
  string(REGEX REPLACE "[a-z]+:" "" chips "${arg_TARGET}")
  list(JOIN chips "_" chip)
  list(JOIN arg_TARGET "," targets)
  set(library "${target}")
  if(TARGET ${target})
    set(library "${target}_${stem}_${chip}")
  endif()
  if(TARGET ${library})
    message(FATAL_ERROR "tile2cu_add_kernels: ${target} has kernels of ${arg_FILE} for ${targets} already; "
      "make them a library of another name")
  endif()
  if(NOT arg_OUTPUT_DIRECTORY)
    set(arg_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/tile2cu/${library}")
  endif()

  set(command "${tile2cu_COMMAND}" emit "${file}" -o "${arg_OUTPUT_DIRECTORY}" --target "${targets}")
  foreach(option KERNEL NAME STYLE LINE)
    if(arg_${option})
      string(TOLOWER "--${option}" flag)
      list(APPEND command ${flag} "${arg_${option}}")
    endif()
  endforeach()
  foreach(define IN LISTS arg_DEFINES)
    list(APPEND command -D "${define}")
  endforeach()
  foreach(shim IN LISTS arg_SHIMS)
    list(APPEND command --shim "${shim}")
  endforeach()
  if(arg_WITH_TEST)
    list(APPEND command --with-test)
  endif()

  execute_process(
    COMMAND ${command} --list-outputs
    OUTPUT_VARIABLE outputs OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" outputs "${outputs}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")

  set(depfile "${CMAKE_CURRENT_BINARY_DIR}/${library}.d")
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND ${command} -MF "${depfile}"
    DEPENDS "${file}" "${tile2cu_COMMAND}"
    DEPFILE "${depfile}"
    COMMENT "tile2cu ${arg_FILE} for ${targets}"
    VERBATIM)
  if(chips MATCHES ";")
    add_custom_target(${library}_sources DEPENDS ${outputs})  # several libraries have sources of one command
  endif()

  set(texts ${outputs})
  list(FILTER texts INCLUDE REGEX "\\.(cu|hip)$")
  set(headers ${outputs})
  list(FILTER headers INCLUDE REGEX "\\.h$")
  set(tests ${outputs})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  set(shims ${outputs})
  list(FILTER shims INCLUDE REGEX "\\.cpp$")
  list(FILTER shims EXCLUDE REGEX "_(test|dispatch)\\.cpp$")
  set(dispatches)
  if(chips MATCHES ";")
    set(dispatches ${outputs})
    list(FILTER dispatches INCLUDE REGEX "_dispatch\\.cpp$")
  endif()
  set(defining ${texts} ${dispatches})
  _tile2cu_refuse_clashes(${target} "${targets}" "${defining}")

  if(dispatches)
    add_library(${library} STATIC ${dispatches} ${headers})
    add_dependencies(${library} ${library}_sources)
    foreach(each chip IN ZIP_LISTS arg_TARGET chips)
      set(of_chip ${texts})
      list(FILTER of_chip INCLUDE REGEX "_${chip}\\.(cu|hip)$")
      add_library(${library}_${chip} OBJECT ${of_chip})
      add_dependencies(${library}_${chip} ${library}_sources)
      set_target_properties(${library}_${chip} PROPERTIES POSITION_INDEPENDENT_CODE ON)
      _tile2cu_set_architecture(${library}_${chip} "${each}")
      _tile2cu_set_style(${library}_${chip} "${arg_STYLE}")
      target_link_libraries(${library}_${chip} PRIVATE tile2cu::headers)
      target_sources(${library} PRIVATE "$<TARGET_OBJECTS:${library}_${chip}>")
    endforeach()
  else()
    add_library(${library} STATIC ${texts} ${headers})
    _tile2cu_set_architecture(${library} "${arg_TARGET}")
    _tile2cu_set_style(${library} "${arg_STYLE}")
  endif()
  add_library(tile2cu::${library} ALIAS ${library})
  set_target_properties(${library} PROPERTIES
    POSITION_INDEPENDENT_CODE ON PUBLIC_HEADER "${headers}" TILE2CU_SOURCES "${texts}" TILE2CU_SHIMS "${shims}")
  target_include_directories(${library} PUBLIC "$<BUILD_INTERFACE:${arg_OUTPUT_DIRECTORY}>")
  target_link_libraries(${library} PUBLIC "$<BUILD_INTERFACE:tile2cu::headers>")
  if(NOT library STREQUAL target)
    target_link_libraries(${target} PUBLIC ${library})
  endif()

  foreach(test IN LISTS tests)
    get_filename_component(name "${test}" NAME_WE)
    add_executable(${library}_${name} "${test}")
    target_link_libraries(${library}_${name} PRIVATE ${library})
    _tile2cu_run_on_gpu(${library}_${name} "${test}" "${arg_TARGET}")
    add_test(NAME tile2cu.${library}.${name} COMMAND ${library}_${name})
    set_tests_properties(tile2cu.${library}.${name} PROPERTIES SKIP_RETURN_CODE 77)  # another device
  endforeach()
endfunction()

# The options of a style. An assertion of CuTe is a call in the kernel, which makes ptxas serialise wgmmas.
function(_tile2cu_set_style library style)
  if(style STREQUAL "cute")
    target_compile_options(${library} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-DNDEBUG>")
  endif()
endfunction()

# The architecture that a target's code is for, and C++17.
function(_tile2cu_set_architecture library target)
  string(REGEX MATCH "^(cuda|hip):(sm_)?(.*)$" found "${target}")
  string(TOUPPER "${CMAKE_MATCH_1}" language)
  set(architecture "${CMAKE_MATCH_3}")
  if(language STREQUAL "CUDA" AND NOT architecture MATCHES "^[0-9]+$")
    set(architecture "${architecture}-real")  # sm_90a and its like run on that architecture alone: there is no PTX
  endif()
  set_target_properties(${library} PROPERTIES
    ${language}_ARCHITECTURES "${architecture}" ${language}_STANDARD 17 ${language}_STANDARD_REQUIRED ON)
endfunction()

# A test runs its kernels on the GPU of the language that the project enables for them.
function(_tile2cu_run_on_gpu executable source targets)
  if(CMAKE_CUDA_COMPILER AND targets MATCHES "^cuda:")
    find_package(CUDAToolkit REQUIRED)
    target_link_libraries(${executable} PRIVATE CUDA::cudart_static)
  elseif(CMAKE_HIP_COMPILER AND targets MATCHES "^hip:")
    set_source_files_properties("${source}" PROPERTIES LANGUAGE HIP)
    list(GET targets 0 first)
    _tile2cu_set_architecture(${executable} "${first}")
  else()
    return()
  endif()
  target_compile_definitions(${executable} PRIVATE TL_ON_GPU)
endfunction()

# Kernels of one name in one binary would have one symbol: the linker would take either.
function(_tile2cu_refuse_clashes target wanted texts)
  foreach(text IN LISTS texts)
    get_filename_component(name "${text}" NAME_WE)
    if(text MATCHES "_dispatch\\.cpp$")
      string(REGEX REPLACE "_dispatch$" "" name "${name}")
    endif()
    get_property(other GLOBAL PROPERTY TILE2CU_KERNEL_${target}_${name})
    if(other)
      message(FATAL_ERROR "tile2cu_add_kernels: ${target} has the kernel ${name} for ${other} and for ${wanted}, and "
        "both define the function ${name}; name both after TARGET of one call, which chooses by the device, or give one "
        "another NAME")
    endif()
    set_property(GLOBAL PROPERTY TILE2CU_KERNEL_${target}_${name} "${wanted}")
  endforeach()
endfunction()
