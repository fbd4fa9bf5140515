import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'tsup'

/** A field that jobs of the next version have and that the present one does not know. */
export const nextField = { name: 'ofTheNextVersion', value: 'kept' }

/**
 * Changes of an imagined next version: a field of the record, written when a job is created, and a column and an index
 * unknown to this version.
 */
const nextVersion = [
  {
    file: 'core/engine/job/job.js',
    from: 'deliveries: z.array(deliverySchema)',
    to: `deliveries: z.array(deliverySchema), ${nextField.name}: z.string().default('lost')`,
  },
  {
    file: 'core/engine/job/new-job.js',
    from: 'deliveries: []',
    to: `deliveries: [], ${nextField.name}: '${nextField.value}'`,
  },
  {
    file: 'adapters/stores/postgres/migrations.js',
    from: 'const stepTimeoutMs =',
    to:
      'steps.push({ isAdditive: true, statements: (schema) => [`ALTER TABLE ${schema}.jobs ADD COLUMN ' +
      'of_the_next_version text`, `CREATE INDEX of_the_next_version ON ${schema}.jobs (of_the_next_version)`] ' +
      '})\nconst stepTimeoutMs =',
  },
]

/** A folder with the build of another version, made inside the repository, so that it finds the same packages. */
export interface OtherBuild {
  folder: string
  remove(): void
}

/**
 * `next`: the present build, changed as the next version might be. Anything else: that git revision, built from its
 * own sources.
 */
export async function otherBuild(root: string, version: string): Promise<OtherBuild> {
  const cache = join(root, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'stemwork-other-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    cpSync(join(root, 'package.json'), join(folder, 'package.json'))
    // A worker loads the bundled model before it is ready.
    symlinkSync(join(root, 'models'), join(folder, 'models'))
    if (version === 'next') makeNext(root, folder)
    else await makeOf(root, folder, version)
    return { folder, remove }
  } catch (error) {
    remove()
    throw error
  }
}

function makeNext(root: string, folder: string): void {
  // The build has one file for each source file, in which the change is made.
  for (const part of ['dist', 'build']) cpSync(join(root, part), join(folder, 'dist'), { recursive: true })
  for (const { file, from, to } of nextVersion) {
    const path = join(folder, 'dist', file)
    const text = readFileSync(path, 'utf8')
    if (!text.includes(from)) throw new Error(`The next version cannot be made: ${file} does not hold "${from}".`)
    writeFileSync(path, text.replace(from, to))
  }
}

async function makeOf(root: string, folder: string, ref: string): Promise<void> {
  const archive = spawnSync('git', ['archive', ref, 'src', 'scripts/build-kernels.mjs'], {
    cwd: root,
    maxBuffer: 2 ** 28,
  })
  if (archive.status !== 0) throw new Error(`git has no ${ref}: ${archive.stderr.toString()}`)
  const unpacked = spawnSync('tar', ['-x', '-C', folder], { input: archive.stdout })
  if (unpacked.status !== 0) throw new Error(`tar failed: ${unpacked.stderr.toString()}`)
  await build({
    entry: [
      join(folder, 'src/**/*.ts'),
      `!${join(folder, 'src/console/**')}`,
      `!${join(folder, 'src/**/assembly/**')}`,
    ],
    outDir: join(folder, 'dist'),
    config: false,
    bundle: false,
    format: 'esm',
    target: 'node20',
    silent: true,
  })
  // The folder into which the script writes them.
  symlinkSync('dist', join(folder, 'build'))
  const kernels = spawnSync(process.execPath, [join(folder, 'scripts/build-kernels.mjs')])
  if (kernels.status !== 0) throw new Error(`The kernels were not compiled: ${kernels.stderr.toString()}`)
}
