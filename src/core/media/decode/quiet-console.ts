type Method = 'log' | 'info' | 'warn' | 'error' | 'debug'
const methods: readonly Method[] = ['log', 'info', 'warn', 'error', 'debug']

let depth = 0
let isInstalled = false

/**
 * Runs `work` with a silent console: decoders print dozens of lines about damaged files. Decoders keep the console
 * functions that they find when they are loaded, so these are wrapped once and stay wrapped; outside `work` they print
 * as before. Decoders are only loaded in the separation's own child process, so the host's console is never touched.
 */
export async function quietly<Result>(work: () => Promise<Result>): Promise<Result> {
  install()
  depth++
  try {
    return await work()
  } finally {
    depth--
  }
}

function install(): void {
  if (isInstalled) return
  isInstalled = true
  for (const method of methods) {
    const print = console[method].bind(console)
    console[method] = (...values: unknown[]) => {
      if (depth === 0) print(...values)
    }
  }
}
