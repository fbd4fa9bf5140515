import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { typeProblems } from '../examples/type-problems.js'
import { buildDeclarations } from '../declarations.js'
import { root } from './tarball.js'
import { temporaryFolder } from '../temporary-folder.js'

// `create-stemwork` is a separate package in this repository. `test/platforms` installs and runs its projects.
interface Manifest {
  name: string
  version: string
  engines: Record<string, string>
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  files?: string[]
}

const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Manifest
const own = read(join(root, 'package.json'))
const { templates } = (await import(`${root}create-stemwork/project.js`)) as { templates: Record<string, unknown> }
const names = Object.keys(templates)
const folder = temporaryFolder()

function create(...words: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'create-stemwork/main.js'), ...words], {
    cwd: folder,
    encoding: 'utf8',
    input: '',
  })
  return { status, stdout, stderr }
}

describe('npm create stemwork', () => {
  beforeAll(() => {
    for (const name of names) {
      const { status, stdout, stderr } = create(name, '--template', name)
      expect(status, stderr).toBe(0)
      expect(stdout).toContain(`cd ${name}\n  npm install\n  npm start`)
    }
  })

  test('has the templates that are documented', () => {
    expect(names).toEqual(['express', 'hono', 'engine', 'workflow'])
    const page = readFileSync(join(root, 'docs/getting-started.md'), 'utf8')
    for (const name of names) expect(page).toContain(`\`${name}\``)
  })

  test('creates projects whose programs match the types of the package', () => {
    buildDeclarations()
    const modules = join(folder, 'node_modules')
    mkdirSync(modules)
    for (const name of readdirSync(join(root, 'node_modules'))) {
      if (!name.startsWith('.')) symlinkSync(join(root, 'node_modules', name), join(modules, name), 'junction')
    }
    symlinkSync(root, join(modules, 'stemwork'), 'junction')
    const sources = names
      .filter((name) => existsSync(join(folder, name, 'src')))
      .flatMap((name) => readdirSync(join(folder, name, 'src')).map((file) => join(folder, name, 'src', file)))
    const settings = { extends: './express/tsconfig.json', compilerOptions: { rootDir: '.', noEmit: true } }
    expect(typeProblems(folder, sources, settings)).toBe('')
  }, 300_000)

  test('creates a workflow that passes its tests', () => {
    const { status, stdout } = spawnSync(process.execPath, ['--test'], {
      cwd: join(folder, 'workflow'),
      encoding: 'utf8',
    })
    expect([status, stdout]).toEqual([0, expect.stringMatching(/pass 3\b/)])
  })

  test('depends on this version, and on the package versions that this repository is tested with', () => {
    const known = { ...own.dependencies, ...own.devDependencies, stemwork: `~${own.version}` }
    for (const name of names) {
      const { dependencies, devDependencies, engines } = read(join(folder, name, 'package.json'))
      expect(known).toMatchObject({ ...dependencies, ...devDependencies })
      expect(engines).toEqual(own.engines)
    }
    expect(read(join(root, 'create-stemwork/package.json'))).toMatchObject({
      version: own.version,
      engines: own.engines,
    })
  })

  test('never gives a project the name of one of its dependencies', () => {
    expect(names.map((name) => read(join(folder, name, 'package.json')).name)).toEqual([
      'my-express',
      'my-hono',
      'engine',
      'workflow',
    ])
  })

  test('names a folder as a shell and npm take it', () => {
    expect(create('my songs', '--template', 'workflow').stdout).toContain('cd "my songs"\n')
    const nameOf = (place: string) => {
      expect(create(place, '--template', 'engine').status).toBe(0)
      return read(join(folder, place, 'package.json')).name
    }
    const made = ['onnxruntime-node', 'typescript', 'stemwork', 'a'.repeat(230)].map(nameOf)
    expect(made).toEqual(['my-onnxruntime-node', 'my-typescript', 'my-stemwork', 'a'.repeat(200)])
  })

  test('is published with every file of its templates, and needs no other package', () => {
    const place = join(root, 'create-stemwork')
    const { stdout } = spawnSync('npm pack --dry-run --json --ignore-scripts', {
      cwd: place,
      encoding: 'utf8',
      shell: true,
    })
    const [packed] = Object.values(JSON.parse(stdout) as Record<string, { files: { path: string }[] }>)
    const templateFiles = readdirSync(join(place, 'templates'), { recursive: true, withFileTypes: true })
      .filter((file) => file.isFile())
      .map((file) => join(file.parentPath, file.name).slice(place.length + 1))
    const files = packed?.files.map(({ path }) => path) ?? []
    expect(files).toEqual(expect.arrayContaining([...templateFiles, 'main.js', 'project.js', 'README.md', 'LICENSE']))
    expect(files).toHaveLength(templateFiles.length + 5)
    expect(read(join(place, 'package.json')).dependencies).toBeUndefined()
  })

  test('refuses a folder that has files, and says what to do about wrong arguments', () => {
    mkdirSync(join(folder, 'full'))
    writeFileSync(join(folder, 'full/mine.txt'), 'mine')
    const refused = create('full', '--template', 'hono')
    expect(refused).toMatchObject({ status: 1, stdout: '' })
    expect(refused.stderr).toBe('The folder full has files (mine.txt, ...). Choose an empty or new one.\n')
    expect(readdirSync(join(folder, 'full'))).toEqual(['mine.txt'])

    const { status, stderr } = create('full/mine.txt', '--template', 'hono')
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^The folder full\/mine\.txt cannot be created or read \(EEXIST.*\)\. Choose another one\.\n$/,
      ),
    ])
    expect(create('new', '--template', 'koa')).toMatchObject({
      status: 1,
      stderr: 'There is no template "koa". Choose one of express, hono, engine, workflow.\n',
    })
    // Without a terminal, it asks no questions.
    expect(create('new')).toMatchObject({
      status: 1,
      stderr: 'Name a template: --template express|hono|engine|workflow.\n',
    })
    expect(create('new', '--typescript').stderr).toMatch(/--typescript[\s\S]*Usage: npm create stemwork/)
    expect(existsSync(join(folder, 'new'))).toBe(false)
  })
})
