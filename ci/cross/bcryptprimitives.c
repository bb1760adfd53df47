/* Wine 8 lacks this library, which Rust's standard library imports. It lies beside the programs. */
#include <windows.h>
#include <ntsecapi.h>
BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T n) { return RtlGenRandom(bytes, (ULONG)n); }
BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, LPVOID reserved) { return TRUE; }
