import { Worker } from 'node:worker_threads'

const hostIntervalMs = 1000
/** In this time, memory can grow by a few hundred megabytes at most. */
const memoryIntervalMs = 50

/**
 * Ends this process when its parent is gone, or when it uses more memory than `limit[0]`. The watch runs in a thread: a
 * stage that never yields does not see the channel close, and would use a core forever after the host was killed.
 *
 * @param limit in bytes, in shared memory; 0: no limit
 */
export function watchProcess(limit: Float64Array): void {
  // The parent is read now: when the thread starts, process 1 may already have replaced a killed host.
  new Worker(watchSource(process.ppid), {
    eval: true,
    execArgv: [],
    workerData: limit,
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
  }).unref()
}

/**
 * Source of the watch: text instead of a file, so that it runs with any loader. The runner looks for its "FATAL ERROR".
 */
export const watchSource = (host: number) => `
const limit = require('node:worker_threads').workerData
setInterval(() => {
  try {
    process.kill(${host}, 0)
    if (process.ppid === ${host}) return
  } catch (error) {
    if (error.code === 'EPERM') return
  }
  process.kill(process.pid, 'SIGKILL')
}, ${hostIntervalMs})
setInterval(() => {
  // Read once: the stage may end, and its limit with it, while the memory is read.
  const most = limit[0]
  if (most === 0 || process.memoryUsage.rss() <= most) return
  try {
    const words = 'the process holds more memory than the ' + most + ' bytes that its stage may take'
    require('node:fs').writeSync(2, 'FATAL ERROR: ' + words + '\\n')
  } finally {
    process.kill(process.pid, 'SIGKILL')
  }
}, ${memoryIntervalMs})
`
