import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'

/** Whether a program that makes test files is installed. Tests that need a missing program are skipped and counted. */
export function hasProgram(name: string): boolean {
  return spawnSync(name, ['-version'], { stdio: 'ignore' }).error === undefined
}

export const runProgram = promisify(execFile)
