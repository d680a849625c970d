# The target tutti_libtorch, from the wheel in TUTTI_LIBTORCH; in the build and, installed, for those who
# find_package(tutti). Linked directly: TorchConfig.cmake asks for a CUDA toolkit that a CPU machine does not have.
add_library(tutti_libtorch INTERFACE IMPORTED GLOBAL)
target_include_directories(tutti_libtorch SYSTEM INTERFACE
  ${TUTTI_LIBTORCH}/include ${TUTTI_LIBTORCH}/include/torch/csrc/api/include)
target_link_directories(tutti_libtorch INTERFACE ${TUTTI_LIBTORCH}/lib)
target_link_options(tutti_libtorch INTERFACE -Wl,-rpath,${TUTTI_LIBTORCH}/lib
                    -Wl,--allow-shlib-undefined)
target_link_libraries(tutti_libtorch INTERFACE torch_cpu c10)
