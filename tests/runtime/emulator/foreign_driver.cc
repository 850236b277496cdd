// What a process that already holds a real driver looks like: driver functions in its global scope.
// The emulator must not call them (DriverTest.ForeignDriverInTheProcessIsNotCalled).
extern "C" {

__attribute__((visibility("default"), used)) int cuMemHostAlloc(void**, unsigned long, unsigned) {
  return 999;  // CUDA_ERROR_UNKNOWN
}
}
