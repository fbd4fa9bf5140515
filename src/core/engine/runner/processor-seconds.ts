import { readFileSync } from 'node:fs'

/** Linux counts in hundredths of a second, whatever its own clock is. */
const ticksPerSecond = 100

/** Processor time of this process so far and, on Linux, of the programs that it started and that have ended. */
export function processorSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6 + ofEndedPrograms()
}

function ofEndedPrograms(): number {
  if (process.platform !== 'linux') return 0
  try {
    // Behind the name, which may hold spaces, and twelve other fields: `cutime` and `cstime` (proc(5)).
    const fields = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1)?.split(' ') ?? []
    return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond || 0
  } catch {
    return 0
  }
}
