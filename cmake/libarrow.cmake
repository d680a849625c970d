# tutti_libarrow: Arrow from the pyarrow wheel; tools/setup puts it where TUTTI_ARROW points. Its library has the providers' own in it, and
# needs none but the C and C++ ones.
add_library(tutti_libarrow INTERFACE)
target_include_directories(tutti_libarrow SYSTEM INTERFACE ${TUTTI_ARROW}/include)
target_link_directories(tutti_libarrow INTERFACE ${TUTTI_ARROW})
target_link_options(tutti_libarrow INTERFACE -Wl,-rpath,${TUTTI_ARROW} -Wl,--allow-shlib-undefined)
target_link_libraries(tutti_libarrow INTERFACE -l:libarrow.so.2500)
