// A stand-in for libnvrtc-builtins: a shared library without content.
extern "C" int pagejit_builtins_stub() { return 0; }
