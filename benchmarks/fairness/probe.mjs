// Loaded into the process of `stemwork serve` by --import: reports its memory and open resources to its parent over
// IPC.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const isService = process.argv[2] === 'serve' && process.send !== undefined
if (isService) {
  let peakBytes = 0
  setInterval(() => (peakBytes = Math.max(peakBytes, process.memoryUsage.rss())), 50).unref()
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  process.on('message', (message) => {
    if (message === 'exit') process.exit()
    const resources = {}
    for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1
    const { user, system } = process.cpuUsage()
    process.send({
      bytes: process.memoryUsage.rss(),
      peakBytes,
      cpuMs: (user + system) / 1000,
      loopDelayMs: delay.percentile(95) / 1e6,
      resources,
    })
    peakBytes = 0
    delay.reset()
  })
  process.channel.unref()
}
