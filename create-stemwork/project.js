import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'

/** An error that the user can fix; its message says how. */
export class ProjectError extends Error {}

/** `parts` are folders of `templates`; files of later ones replace those of earlier ones. */
export const templates = {
  express: {
    about: 'the service in an Express server, with the console',
    parts: ['shared', 'service', 'express'],
    dependencies: { express: '~5.3.0' },
    devDependencies: { '@types/express': '^5.0.6' },
    start: 'npm start',
  },
  hono: {
    about: 'the same in a Hono server',
    parts: ['shared', 'service', 'hono'],
    dependencies: { '@hono/node-server': '^2.1.9', hono: '^4.13.19' },
    devDependencies: {},
    start: 'npm start',
  },
  engine: {
    about: 'the engine alone: a program that separates the songs it is given',
    parts: ['shared', 'engine'],
    dependencies: {},
    devDependencies: {},
    start: 'npm start song.mp3',
  },
  workflow: {
    about: 'a workflow of your own, with a test, reloaded on each change',
    parts: ['shared', 'workflow'],
    without: ['tsconfig.json'],
    dependencies: { zod: '~4.6.7' },
    devDependencies: {},
    scripts: { start: 'stemwork dev ./workflows', test: 'node --test' },
    start: 'npm start',
  },
}

/**
 * Creates a project in a folder, which must be empty or missing.
 *
 * @returns {Promise<{ folder: string, files: string[], start: string }>} the folder as it was given, its files, and the command that starts it
 * @throws {ProjectError} for an unknown template and a folder that has files
 */
export async function makeProject(folder, name) {
  const template = Object.hasOwn(templates, name) ? templates[name] : undefined
  if (!template) {
    throw new ProjectError(`There is no template "${name}". Choose one of ${Object.keys(templates).join(', ')}.`)
  }
  const place = resolve(folder)
  // A folder with only a new repository counts as empty.
  const found = (await filesIn(folder, place)).filter((file) => file !== '.git')
  if (found.length > 0) {
    throw new ProjectError(`The folder ${folder} has files (${found[0]}, ...). Choose an empty or new one.`)
  }
  for (const part of template.parts) {
    await cp(new URL(`templates/${part}`, import.meta.url), place, { recursive: true })
  }
  for (const file of template.without ?? []) await rm(join(place, file))
  // npm leaves files with these names out of packages or reads them itself.
  for (const hidden of ['gitignore', 'npmrc']) await rename(join(place, `_${hidden}`), join(place, `.${hidden}`))
  await writeFile(
    join(place, 'package.json'),
    `${JSON.stringify(await manifest(basename(place), template), null, 2)}\n`,
  )
  const files = await readdir(place, { recursive: true, withFileTypes: true })
  return { folder, files: files.filter((file) => file.isFile()).map((file) => file.name), start: template.start }
}

/** Creates the folder unless it exists. */
async function filesIn(folder, place) {
  try {
    await mkdir(place, { recursive: true })
    return await readdir(place)
  } catch ({ message }) {
    throw new ProjectError(`The folder ${folder} cannot be created or read (${message}). Choose another one.`)
  }
}

/** In TypeScript, unless the template has its own scripts. */
async function manifest(folder, { dependencies, devDependencies, scripts }) {
  // The two packages are released together.
  const { version } = JSON.parse(await readFile(new URL('package.json', import.meta.url), 'utf8'))
  const letters = folder.toLowerCase().replace(/^[^a-z0-9]+|[^a-z0-9._-]+/g, '')
  // npm takes at most 214.
  const name = letters.slice(0, 200) || 'my-stems'
  const needed = sorted({ ...dependencies, 'onnxruntime-node': '~1.30.0', stemwork: `~${version}` })
  const neededToBuild = sorted({
    ...devDependencies,
    ...(scripts ? {} : { '@types/node': '^20.19.43', typescript: '~5.9' }),
  })
  return {
    // A package cannot depend on its own name.
    name: name in needed || name in neededToBuild ? `my-${name}` : name,
    version: '0.1.0',
    private: true,
    type: 'module',
    engines: { node: '^20.19.0 || >=22.12.0' },
    scripts: scripts ?? { build: 'tsc', start: 'npm run --silent build && node dist/main.js' },
    dependencies: needed,
    devDependencies: neededToBuild,
    allowScripts: { 'onnxruntime-node': false },
  }
}

function sorted(names) {
  return Object.fromEntries(Object.entries(names).sort(([a], [b]) => (a < b ? -1 : 1)))
}
