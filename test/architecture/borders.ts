import { cycles, type SourceTree } from './source-tree.js'

interface Border {
  /** The files to which the rule applies. */
  room: RegExp
  /** The files of `src` that they may import. */
  may: RegExp[]
  why: string
}

const borders: Border[] = [
  {
    room: /^core\/engine\//,
    may: [/^core\/engine\//],
    why: 'the engine is a product of its own and knows no workflow',
  },
  {
    room: /^core\/media\//,
    may: [/^core\/media\//, /^core\/engine\/workflow\//, /^core\/engine\/(errors|package-files)\.ts$/],
    why: 'media reads and writes files for every workflow, and knows no network',
  },
  {
    room: /^core\/models\//,
    may: [
      /^core\/models\//,
      /^core\/media\//,
      /^core\/engine\/workflow\//,
      /^core\/engine\/(errors|package-files)\.ts$/,
    ],
    why: 'models are used by workflows and know none',
  },
  {
    room: /^core\/workflows\//,
    may: [
      /^core\/(workflows|models|media)\//,
      /^core\/engine\/workflow\//,
      /^core\/engine\/(errors|package-files)\.ts$/,
    ],
    why: 'a workflow knows what a workflow is, the errors, and where the package is',
  },
  {
    room: /^core\/workflows\/(loudness|transcode|analysis)\/(?!beat-network\/)/,
    may: [/^core\/(?!models\/)/],
    why: 'these workflows load no network',
  },
  {
    room: /^core\/workflows\/analysis\/beat-network\//,
    may: [/^core\/(workflows|media)\/analysis\//, /^core\/models\//, /^core\/engine\//],
    why: 'it gives a network to the analysis, and reads and writes no audio itself',
  },
  { room: /^core\//, may: [/^core\//], why: 'core never imports adapters, http, client, console or cli' },
  {
    room: /^adapters\//,
    may: [
      /^adapters\//,
      /^core\/engine\/(ports|job)\//,
      /^core\/engine\/errors\.ts$/,
      /^core\/engine\/limits\/shares\.ts$/,
    ],
    why: 'adapters know only the ports, the job, the errors and how applications share',
  },
  {
    room: /^adapter\//,
    may: [
      /^adapter\//,
      /^adapters\/(stores|blobs)\/shared\//,
      /^core\/engine\/(ports|job)\//,
      /^core\/engine\/errors\.ts$/,
    ],
    why: "adapters outside the package get what adapters share, and none of this package's",
  },
  {
    room: /^contract\//,
    may: [/^contract\//, /^core\/engine\/(ports|job)\//, /^core\/engine\/errors\.ts$/],
    why: 'the contract suites know only what an adapter knows',
  },
  { room: /^client\//, may: [/^client\//], why: 'the client runs in browsers and depends on nothing' },
  {
    room: /^console\//,
    // Only the operator's page has its own interface. `canSeparate`, which is public, and `trustedScript` are alone in
    // their files, so that the rest is only loaded where it can be used. The server's code changes tempo and pitch,
    // finds beats, writes mixes, finds parts of files and decodes uncompressed ones.
    may: [
      /^console\//,
      /^client\//,
      /^http\/operator\/answers\.ts$/,
      /^browser\/(index|can-separate|trusted-script|aac-packets)\.ts$/,
      /^core\/media\/(analysis|dsp|encode)\//,
      /^core\/media\/(bytes|decode\/(file-bytes|flac\/flac-frame|mpeg\/(frame-sync|mp3-info)|mp4\/mp4-stream))\.ts$/,
      /^core\/media\/decode\/(ogg\/(ogg-pages|ogg-stream)|pcm\/pcm)\.ts$/,
    ],
    why: 'the page uses the public interface by way of the client, and separates as any page can',
  },
  {
    room: /^http\//,
    may: [
      /^http\//,
      /^core\/engine\/(engine|errors|events|options|package-files)\.ts$/,
      /^core\/engine\/(ports|job|workflow)\//,
      // How bodies are read, whoever sends them.
      /^core\/engine\/(intake\/form-file|fetch\/tiny-chunks)\.ts$/,
      // The only mechanism that shares scarce resources, slices large reads and writes, and limits concurrent reads.
      /^core\/engine\/limits\/(shares|rested|remembered|map-in-turns)\.ts$/,
      /^core\/engine\/queries\/job-slices\.ts$/,
      // The form of an application's secret, for code that creates one, and the names of events.
      /^core\/engine\/webhooks\/(signature|signing-secrets|webhook-message)\.ts$/,
    ],
    why: "http knows the engine's public types",
  },
  {
    room: /^mcp\//,
    may: [/^mcp\//, /^client\//, /^http\/mounts\/(mountable|request-json)\.ts$/, /^core\/engine\/package-files\.ts$/],
    why: 'agents use the public interface by way of the client',
  },
  {
    room: /^opentelemetry\//,
    may: [/^opentelemetry\//, /^core\/engine\/ports\/tracing\.ts$/, /^core\/engine\/job\/trace-context\.ts$/],
    why: 'it implements the port for tracing',
  },
  {
    room: /^browser\//,
    may: [/^browser\//, /^core\/(media|models|workflows\/separation)\//, /^core\/engine\/errors\.ts$/],
    why: 'a page separates by the modules of the server, without its engine',
  },
  { room: /^(?!browser\/|console\/)/, may: [/^(?!browser\/)/], why: 'nothing imports browser' },
  { room: /^(?!cli\/)/, may: [/^(?!cli\/)/], why: 'nothing imports cli' },
]

/** Packages that only certain files may import. */
const packageRules: { packages: RegExp; may: RegExp; why: string }[] = [
  {
    packages: /^mediabunny$/,
    may: /^core\/media\/decode\/mpeg\/mpeg-ts-packets\.ts$/,
    why: 'the build takes it into that file, and hosts do not have it',
  },
  { packages: /^(express|koa|fastify|hono|next)$/, may: /^$/, why: 'frameworks are never imported' },
  { packages: /^@opentelemetry\//, may: /^opentelemetry\//, why: 'tracing is a port, and its package is optional' },
  { packages: /^(tsyringe|reflect-metadata)$/, may: /^container\.ts$/, why: 'the container is known in one file' },
]

/** Messages for everything in the tree that the architecture forbids. */
export function violations(tree: SourceTree): string[] {
  const found: string[] = []
  for (const { from, to } of tree.imports) {
    if (tree.files.has(to)) {
      for (const { room, may, why } of borders) {
        if (room.test(from) && !may.some((allowed) => allowed.test(to))) found.push(`${from} imports ${to}: ${why}`)
      }
      const [workflow, another] = [from, to].map((path) => /^core\/workflows\/([\w-]+)\//.exec(path)?.[1])
      const isComposition = from === 'core/workflows/practice/practice-workflow.ts' && to.endsWith('-workflow.ts')
      if (workflow !== undefined && another !== undefined && workflow !== another && !isComposition) {
        found.push(`${from} imports ${to}: a workflow does not import another one`)
      }
      const [own, other] = [from, to].map((path) => /^adapters\/\w+\/([\w-]+)\//.exec(path)?.[1])
      if (own !== undefined && other !== undefined && own !== other && other !== 'shared') {
        found.push(`${from} imports ${to}: an adapter does not import another one`)
      }
    } else {
      for (const { packages, may, why } of packageRules) {
        if (packages.test(to) && !may.test(from)) found.push(`${from} imports ${to}: ${why}`)
      }
    }
  }
  const inBrowsers = tree.reachableFrom(
    [...tree.files].filter((file) => file.startsWith('browser/')),
    true,
  )
  for (const { from, to } of tree.nodeImports)
    if (inBrowsers.has(from))
      found.push(`${from} imports ${to}: stemwork/browser leads to it, and browsers have no Node.js`)
  for (const cycle of cycles(tree.fileGraph())) found.push(`files import each other in a cycle: ${cycle.join(' -> ')}`)
  for (const cycle of cycles(tree.folderGraph())) {
    found.push(`folders import each other in a cycle: ${cycle.join(' -> ')}`)
  }
  return found
}
