import { spawnSync } from 'node:child_process'

/**
 * The Python that has other programs of the field, for comparing results: that of `STEMWORK_PEERS_PYTHON`, or
 * `python3`.
 */
const python = process.env.STEMWORK_PEERS_PYTHON ?? 'python3'

/** The Python that can import these packages. Tests are skipped and counted if there is none. */
export function pythonWith(...packages: string[]): string | undefined {
  const { status } = spawnSync(python, ['-c', packages.map((name) => `import ${name}`).join('\n')], { stdio: 'ignore' })
  return status === 0 ? python : undefined
}
