import { writeFile } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'

export const nicenessSchema = z.number().int().min(-20).max(19).default(10)

/** Linux takes one such change each 100 ms from all processes without privileges together. */
const busyWaitMs = 150
const maxTries = 10

/**
 * Gives a child that leads a session of its own its niceness towards all other processes.
 *
 * Linux shares the processors out among sessions first and looks at niceness only within one (`sched(7)`, "The autogroup feature"):
 * without a niceness of its own for the session, the child would get as much as the host however nice it is. Where the kernel knows
 * no such groups, or control groups have replaced them, the process's own niceness is what counts.
 *
 * @param niceness -20 to 19; below 0 needs privileges.
 * @throws the system's error if one of them could not be set.
 */
export async function setSessionPriority(pid: number, niceness: number): Promise<void> {
  setPriority(pid, niceness)
  if (process.platform === 'linux') await setAutogroupNiceness(`/proc/${pid}/autogroup`, niceness)
}

async function setAutogroupNiceness(path: string, niceness: number): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await writeFile(path, String(niceness), { flag: 'r+' })
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // A kernel without autogroups, or the process is gone.
      if (code === 'ENOENT') return
      if (code !== 'EAGAIN' || tries === maxTries) throw error
      await delay(busyWaitMs, undefined, { ref: false })
    }
  }
}
