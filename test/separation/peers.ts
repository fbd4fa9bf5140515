import { spawnSync } from 'node:child_process'

/**
 * The Python with other separation programs, whose results are compared: that of `STEMWORK_PEERS_PYTHON`, or `python3`.
 */
const python = process.env.STEMWORK_PEERS_PYTHON ?? 'python3'

/** The Python if it can import these packages; otherwise tests are skipped and counted. */
export function pythonWith(...packages: string[]): string | undefined {
  const { status } = spawnSync(python, ['-c', packages.map((name) => `import ${name}`).join('\n')], { stdio: 'ignore' })
  return status === 0 ? python : undefined
}
