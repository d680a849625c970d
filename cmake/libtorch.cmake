# libtorch from the PyPI wheel; tools/setup puts it where TUTTI_LIBTORCH points.
set(TUTTI_LIBTORCH "$ENV{HOME}/.cache/tutti/libtorch-2.11.0/torch" CACHE PATH
    "Folder of the torch Python package (has include/ and lib/)")
if(NOT EXISTS ${TUTTI_LIBTORCH}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "no libtorch in ${TUTTI_LIBTORCH}: run tools/setup build, or configure with "
                      "-DTUTTI_LIBTORCH=FOLDER or -DTUTTI_RUNTIME=OFF")
endif()

include(tutti_libtorch)
# Messages of its macros name the file that they stand in, of its headers and of ours: as of torch and of the tree, not as of
# this machine's folders (python/packing/grafting.py).
target_compile_options(tutti_libtorch INTERFACE -fmacro-prefix-map=${TUTTI_LIBTORCH}=torch
                       -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)

# What every room with libtorch includes, precompiled once. Of what a precompiled header uses, templates are instantiated anew
# in each file: of all of torch/torch.h for 9 s, of tensors alone for 3.6 s, so a file includes what it needs of torch::nn.
file(WRITE ${CMAKE_BINARY_DIR}/torch_pch.cc "// The precompiled header's own translation unit.\n")
add_library(tutti_torch_pch OBJECT ${CMAKE_BINARY_DIR}/torch_pch.cc)
target_link_libraries(tutti_torch_pch PUBLIC tutti_flags tutti_base tutti_libtorch)
target_precompile_headers(tutti_torch_pch PRIVATE <torch/types.h> ${CMAKE_SOURCE_DIR}/src/base/json_text.h
                          <string> <vector> <map> <memory> <functional> <absl/status/statusor.h>)
