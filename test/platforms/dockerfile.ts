import { cpSync, mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'

interface Stage {
  /** Folder that replaces the image's `/`. */
  root: string
  workdir: string
}

interface Image {
  /** The working directory of the last stage. */
  folder: string
  command: string[]
  healthCheck: string[]
}

/**
 * Runs the steps of a Dockerfile in folders of this machine, without docker. Base images, users and volumes are
 * ignored; an unknown instruction is an error.
 *
 * @param context the folder of the build
 * @param run runs a command in a folder
 */
export async function imageFolder(
  dockerfile: string,
  context: string,
  run: (command: string, cwd: string) => Promise<string>,
): Promise<Image> {
  const stages = new Map<string, Stage>()
  let stage: Stage | undefined
  const here = () => {
    if (!stage) throw new Error('The Dockerfile does not begin with FROM.')
    return stage
  }
  const folder = () => join(here().root, here().workdir)
  const image: Image = { folder: context, command: [], healthCheck: [] }

  for (const line of dockerfile.split('\n')) {
    const [, instruction, rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
    if (instruction === undefined) {
      if (/^(#.*)?$/.test(line)) continue
      throw new Error(`No instruction: ${line}`)
    }
    switch (instruction) {
      case 'FROM': {
        const name = / AS (\w+)$/.exec(rest)?.[1] ?? 'last'
        stage = { root: join(context, `stage-${name}`), workdir: '/' }
        stages.set(name, stage)
        mkdirSync(stage.root)
        break
      }
      case 'WORKDIR':
        here().workdir = rest
        mkdirSync(folder(), { recursive: true })
        break
      case 'COPY': {
        const [, from, paths = ''] = /^(?:--from=(\w+) )?(.*)$/.exec(rest) ?? []
        const source = from === undefined ? context : stages.get(from)?.root
        if (source === undefined) throw new Error(`No stage of that name: ${line}`)
        const [target = '', ...sources] = paths.split(' ').reverse()
        for (const path of sources) {
          const isFolder = from !== undefined
          cpSync(join(source, path), join(folder(), target, isFolder ? '' : basename(path)), {
            recursive: true,
            verbatimSymlinks: true,
          })
        }
        break
      }
      case 'RUN':
        await run(rest, folder())
        break
      case 'CMD':
        image.command = JSON.parse(rest) as string[]
        break
      case 'HEALTHCHECK':
        image.healthCheck = JSON.parse(rest.slice(rest.indexOf('['))) as string[]
        break
      case 'ENV':
      case 'EXPOSE':
      case 'USER':
      case 'VOLUME':
        break
      default:
        throw new Error(`This instruction is not known here: ${line}`)
    }
  }
  return { ...image, folder: folder() }
}
