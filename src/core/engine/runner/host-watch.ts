import { Worker } from 'node:worker_threads'

const intervalMs = 1000

/**
 * Ends this process when its parent is gone, from a thread of its own: a stage that never yields does not see the channel close,
 * and would burn a core for ever after the host was killed.
 */
export function dieWithHost(): void {
  // The parent is asked for here: by the time the thread runs, a killed host may already have been replaced by process 1.
  new Worker(watch(process.ppid), {
    eval: true,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
  }).unref()
}

/** Source text, not a file: it must run whatever the loader, and it needs nothing but Node. */
const watch = (host: number) => `
setInterval(() => {
  try {
    process.kill(${host}, 0)
    if (process.ppid === ${host}) return
  } catch (error) {
    if (error.code === 'EPERM') return
  }
  process.kill(process.pid, 'SIGKILL')
}, ${intervalMs})
`
