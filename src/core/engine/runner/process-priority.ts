import { writeFile } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'

/** Linux accepts one change of a session's niceness per 100 ms from all unprivileged processes together. */
const busyWaitMs = 150
const maxTries = 10

/**
 * Sets the niceness of a child that leads its own session, relative to all other processes.
 *
 * Linux divides processor time among sessions first and applies niceness only within one (`sched(7)`, "The autogroup
 * feature"): without a niceness for the session, the child would get as much as the host. Where the kernel has no
 * autogroups, or control groups replace them, the niceness of the process counts.
 *
 * @param niceness -20 to 19; below 0 needs privileges.
 * @throws the system's error if either niceness could not be set.
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
      // The kernel has no autogroups, or the process is gone.
      if (code === 'ENOENT') return
      if (code !== 'EAGAIN' || tries === maxTries) throw error
      await delay(busyWaitMs, undefined, { ref: false })
    }
  }
}
