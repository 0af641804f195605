// Does nothing: a library that can be preloaded.
extern "C" __attribute__((visibility("default"))) int cli_preload_present() { return 1; }
