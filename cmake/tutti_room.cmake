# tutti_room(NAME [SEPARATE] [COLD] [DEPS target…] [TEST_DEPS target…] [PCH target] [APART folder…] [TEST_OPTIMIZATION option]
#            [LEFT_OUT folder…] [FOLDER folder])
#
# A folder under src/ is a room: the library target tutti_NAME made of every .cc below the folder,
# the test program tutti_NAME_test made of every *_test.cc and *_test_support.cc, and one fuzz program
# per *_fuzz.cc.
# Files that other rooms' tests need (fakes) are named *_fake.cc and are part of the library.
# PCH names a target whose precompiled header this room reuses; without it, library and tests take
# the plain ones of cmake/precompiled.cmake. SEPARATE: every source is compiled by itself, but tests,
# of which several are compiled as one in every room (TUTTI_UNITY=OFF: none). TEST_OPTIMIZATION: where more than what other
# tests have (cmake/precompiled.cmake) pays. COLD: see tutti_cold. APART: these folders of the room make a library of their own,
# tutti_NAME_apart, so that programs without it need not wait for it; the rest of the room knows nothing of them. LEFT_OUT: these
# folders are not part of it. FOLDER: it is made of this folder alone, for what is not built everywhere.
function(tutti_room name)
  cmake_parse_arguments(ARG "SEPARATE;COLD" "PCH;TEST_OPTIMIZATION;FOLDER" "DEPS;TEST_DEPS;APART;LEFT_OUT"
                        ${ARGN})
  set(place ${CMAKE_CURRENT_SOURCE_DIR})
  if(ARG_FOLDER)
    string(APPEND place /${ARG_FOLDER})
  endif()
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${place}/*.cc)
  foreach(folder ${ARG_LEFT_OUT})
    list(FILTER all EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${folder}/")
  endforeach()
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|test_support|fuzz|benchmark)\\.cc$")
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test(_support)?\\.cc$")
  set(fuzzers ${all})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")

  if(TUTTI_FUZZERS AND NOT TUTTI_FUZZ_WHOLE_ROOMS)
    tutti_only_fuzzed(sources)
    unset(ARG_PCH)  # libtorch's costs much, and none of these includes it
  endif()

  set(target tutti_${name})
  set(libraries ${target})
  if(ARG_APART)
    list(APPEND libraries ${target}_apart)
    list(JOIN ARG_APART "|" folders)
    set(apart ${sources})
    list(FILTER apart INCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/(${folders})/")
    list(REMOVE_ITEM sources ${apart})
    add_library(${target}_apart STATIC ${apart})
    target_link_libraries(${target}_apart PUBLIC ${target})
  endif()
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC tutti_flags ${ARG_DEPS})
  set(test_pch tutti_test_pch)
  if(ARG_PCH)
    set(test_pch ${ARG_PCH})
  else()
    set(ARG_PCH tutti_plain_pch)
  endif()
  foreach(library ${libraries})
    target_precompile_headers(${library} REUSE_FROM ${ARG_PCH})
    if(NOT ARG_SEPARATE)
      tutti_several_as_one(${library})
    endif()
    if(ARG_COLD)
      tutti_cold(${library})
    endif()
  endforeach()

  if(TUTTI_TESTS AND NOT TUTTI_FUZZERS)
    tutti_seed_tests(tests ${name} ${fuzzers})
  endif()
  if(TUTTI_TESTS AND tests)
    add_executable(${target}_test ${tests})
    target_link_libraries(${target}_test PRIVATE ${libraries} ${ARG_TEST_DEPS} GTest::gmock
                          GTest::gtest_main)
    tutti_reuse_pch(${target}_test ${test_pch})
    tutti_several_as_one(${target}_test)
    # What a file keeps to itself seems to GCC to be of a header, which others would include too.
    target_compile_options(${target}_test PRIVATE
                           $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    # GCC takes what was precompiled of a room's own header with any optimisation, but not with
    # none; with ThreadSanitizer it crashes.
    if(test_pch STREQUAL tutti_test_pch OR NOT TUTTI_SANITIZE)
      target_compile_options(${target}_test PRIVATE ${tutti_test_optimization}
                             ${ARG_TEST_OPTIMIZATION})
    endif()
    tutti_test(${name} ${target}_test)
  endif()

  if(TUTTI_FUZZERS)
    foreach(source ${fuzzers})
      get_filename_component(fuzzer ${source} NAME_WE)
      add_executable(${fuzzer} ${source})
      target_link_libraries(${fuzzer} PRIVATE ${libraries})
      tutti_reuse_pch(${fuzzer} tutti_plain_pch)
      target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer -Wl,--as-needed)
    endforeach()
  endif()
endfunction()

# Appends to the variable what makes a test, FuzzSeeds.NAME, of each fuzz target that has a folder NAME_seeds beside it.
function(tutti_seed_tests variable room)
  set(declarations "")
  set(calls "")
  set(targets)
  foreach(source ${ARGN})
    string(REGEX REPLACE "\\.cc$" "_seeds" seeds ${source})
    if(EXISTS ${seeds})
      get_filename_component(target ${source} NAME_WE)
      set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS LLVMFuzzerTestOneInput=${target}
                                                       SKIP_UNITY_BUILD_INCLUSION ON)
      string(APPEND declarations "extern \"C\" int ${target}(const uint8_t* data, size_t size);\n")
      string(APPEND calls "TEST(FuzzSeeds, ${target}) { RunSeeds(\"${seeds}\", ${target}); }\n")
      list(APPEND targets ${source})
    endif()
  endforeach()
  if(targets)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${room}_fuzz_seeds_test.cc)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/fuzz_seeds_test.cc.in ${file} @ONLY)
    set_source_files_properties(${file} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    set(${variable} ${${variable}} ${targets} ${file} PARENT_SCOPE)
  endif()
endfunction()

# tutti_test(NAME PROGRAM): ctest runs the GoogleTest program as two processes, but for what tests/soak.txt lists of NAME.
function(tutti_test name program)
  add_test(NAME ${name} COMMAND ${CMAKE_SOURCE_DIR}/tools/run-shards $<TARGET_FILE:${program}>)
endfunction()

# Even precompiled, headers cost more than a file's own code, and what they make of templates is made once for all: many files are compiled
# as one, so the names that a room's sources, or its tests, keep to themselves differ (decision 041).
function(tutti_several_as_one target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TUTTI_UNITY} UNITY_BUILD_BATCH_SIZE 40)
endfunction()

# For what mostly waits, for processes and the network or for libtorch's kernels: the optimiser would take half of the time
# that such a file compiles, and nobody would notice what it does. Sources with loops that compute say -O3 themselves. GCC warns
# of what may be uninitialized from what it has inlined, and is wrong with -Og. Clang takes no header that was precompiled
# for another optimisation.
function(tutti_cold target)
  target_compile_options(${target} PRIVATE
    "$<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Og;-Wno-maybe-uninitialized>")
endfunction()

# Leaves in the variable only those sources that fuzz targets reach: the others would be compiled
# for nothing.
function(tutti_only_fuzzed variable)
  get_property(fuzzed GLOBAL PROPERTY tutti_fuzzed)
  if(NOT fuzzed)
    find_program(TUTTI_PYTHON3 python3 REQUIRED)
    execute_process(COMMAND ${TUTTI_PYTHON3} ${CMAKE_SOURCE_DIR}/tools/fuzz-sources
                    OUTPUT_VARIABLE fuzzed COMMAND_ERROR_IS_FATAL ANY)
    set_property(GLOBAL PROPERTY tutti_fuzzed "${fuzzed}")
    file(WRITE ${CMAKE_BINARY_DIR}/unreached.cc "// No fuzz target reaches this room.\n")
  endif()
  set(reached)
  foreach(source ${${variable}})
    if(source IN_LIST fuzzed)
      list(APPEND reached ${source})
    endif()
  endforeach()
  if(NOT reached)
    set(reached ${CMAKE_BINARY_DIR}/unreached.cc)
  endif()
  set(${variable} ${reached} PARENT_SCOPE)
endfunction()

# A program that reuses a library's precompiled header: a compiler takes it only if both are compiled
# with -fPIC, where CMake would give a program -fPIE.
function(tutti_reuse_pch target pch)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  target_precompile_headers(${target} REUSE_FROM ${pch})
endfunction()

# tutti_program(TARGET [PCH]): how programs and the tests that run them are compiled; their work is the rooms'.
function(tutti_program target)
  set(pch tutti_plain_pch)
  if(ARGC GREATER 1)
    set(pch ${ARGV1})
  endif()
  tutti_reuse_pch(${target} ${pch})
  tutti_several_as_one(${target})
  tutti_cold(${target})
endfunction()

# tutti_travels(TARGET): as an archive, for machines that have no tutti, this program brings its libraries
# (src/base/process/packed_program.h). As DT_RPATH it holds for the libraries of libraries as well.
function(tutti_travels target)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "$ORIGIN/lib" INSTALL_RPATH "$ORIGIN/lib")
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
endfunction()
