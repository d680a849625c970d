# Language, warnings, optimisation, sanitizers, compiler cache and linker: the same for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")  # CMake's own; sanitizers' builds say others
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()

find_package(Threads REQUIRED)

find_program(TUTTI_CCACHE ccache)
if(TUTTI_CCACHE)
  # GCC's precompiled headers need these to be cached correctly (ccache manual, "Precompiled headers").
  set(tutti_launcher ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${TUTTI_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${tutti_launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${tutti_launcher})
endif()

# What this build compiles with, and of that what users of an installed tutti need: the headers' place.
add_library(tutti_flags INTERFACE)
target_compile_features(tutti_flags INTERFACE cxx_std_20)
target_include_directories(tutti_flags INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>
                           $<INSTALL_INTERFACE:include/tutti>)
set(tutti_flags -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC clears up its memory again and again from 128 MiB on, for a tenth of the time that a file takes: where there is memory
  # for as many compilers as ninja starts, it may wait until a file takes a third of its share.
  cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)  # MiB
  cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR heap "${memory} * 1024 / (${processors} + 2) / 3")
  if(heap GREATER 1000000)
    set(heap 1000000)
  endif()
  list(APPEND tutti_flags -fpch-preprocess)
  if(heap GREATER 131072)
    list(APPEND tutti_flags --param=ggc-min-heapsize=${heap})  # KiB
  endif()
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # x86-64's baseline has no fused multiply-add. With another's, a crop's place, say, would have other bits.
  list(APPEND tutti_flags -ffp-contract=off)
endif()
find_program(TUTTI_MOLD mold)
if(TUTTI_MOLD AND NOT CMAKE_CROSSCOMPILING)  # another compiler looks for it under a name of its own
  target_link_options(tutti_flags INTERFACE $<BUILD_INTERFACE:-fuse-ld=mold>)
endif()
if(TUTTI_SANITIZE)
  list(APPEND tutti_flags -fsanitize=${TUTTI_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(tutti_flags INTERFACE "$<BUILD_INTERFACE:-fsanitize=${TUTTI_SANITIZE}>")
endif()
target_compile_options(tutti_flags INTERFACE "$<BUILD_INTERFACE:${tutti_flags}>")
