const inherited = [
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|TMP|TEMP|PWD)$/i,
  /^(SystemRoot|windir|ComSpec|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE|ProgramData|ProgramFiles.*)$/i,
  /^(LC|XDG|FFMPEG|CUDA|NVIDIA|ORT|OMP|MKL|LD|DYLD|MALLOC)_/,
  // Excludes the service's secrets, such as STEMWORK_LINK_SECRET, and addresses, which may contain passwords.
  /^STEMWORK_(?!.*(SECRET|KEY|STORE|QUEUE|BLOBS|MIRROR))/,
  /^NODE_(ENV|EXTRA_CA_CERTS)$/,
]

/** One malloc arena for all threads: glibc retains freed memory in each, 143 of 537 MB in a WebAssembly separation. */
const defaults = { MALLOC_ARENA_MAX: '1' }

/**
 * The environment of a child: variables that programs, caches and accelerators need, and `extra`. All others are
 * withheld: the child decodes untrusted files and must not have the host's secrets, and `NODE_OPTIONS` would load the
 * host's loaders and debugger.
 */
export function childEnvironment(host: NodeJS.ProcessEnv, extra: Record<string, string> = {}): Record<string, string> {
  const kept = Object.entries(host).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && inherited.some((pattern) => pattern.test(entry[0])),
  )
  return { ...defaults, ...Object.fromEntries(kept), ...extra }
}
