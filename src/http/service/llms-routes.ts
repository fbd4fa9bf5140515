import { readFile } from 'node:fs/promises'
import { packageFile } from '../../core/engine/package-files.js'
import { Problem } from '../routing/problem.js'
import { defineRoute, type DescribedRoute } from '../routing/route.js'
import { packedAnswer, type PackedText, packText } from './page-assets.js'

const list = 'llms.txt'
/** Files from which a program can be written: whole programs first, then the pages that explain them. */
const whole = [
  ...['express', 'next-route', 'worker', 'custom-workflow'].map((name) => `examples/${name}.mjs`),
  ...['getting-started', 'embedding', 'workflows', 'steps', 'concepts', 'deployment', 'platforms', 'http'].map(
    (name) => `docs/${name}.md`,
  ),
]
const repository = 'https://github.com/stemwork/stemwork/blob/main/'

/** The documentation for language models, made of the files of the package (https://llmstxt.org). */
export const llmsRoutes: readonly DescribedRoute[] = [
  llmsRoute('/llms.txt', 'getLlms', 'Get a list of the documentation, for language models', [list]),
  llmsRoute('/llms-full.txt', 'getLlmsFull', 'Get the documentation as one text, with whole programs', [
    list,
    ...whole,
  ]),
]

function llmsRoute(path: string, operation: string, summary: string, files: readonly string[]): DescribedRoute {
  let packed: Promise<PackedText> | undefined
  return defineRoute({
    route: `GET ${path}`,
    operation,
    summary,
    access: 'open',
    atRoot: true,
    answer: { description: 'The text, as Markdown.', contentType: 'text/plain' },
    problems: ['NOT_FOUND'],
    async handle(call) {
      packed ??= Promise.all(files.map(textOf)).then((texts) => packText(texts.join('\n')), missing)
      return packedAnswer(call, await packed, 'text/plain; charset=utf-8')
    },
  })
}

async function textOf(path: string): Promise<string> {
  const text = await readFile(packageFile(path), 'utf8')
  if (path.endsWith('.mjs')) return `## ${path}\n\n\`\`\`js\n${text}\`\`\`\n`
  // Links that work within the package are resolved to the repository.
  const folder = path.startsWith('docs/') ? 'docs/' : ''
  return text.replace(/\]\((?!https?:|#)([^)]+)\)/g, (_, to: string) => `](${new URL(folder + to, repository).href})`)
}

/** Bundles and images may lack the documents. */
function missing(cause: unknown): never {
  throw new Problem('NOT_FOUND', `This installation has no such file. It is at ${repository}${list}`, { cause })
}
