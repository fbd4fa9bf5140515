// Prints docs/licences.md: the decoder of each format and its licence, from the installed packages.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const modules = join(import.meta.dirname, '../node_modules')
const empty = 'npm:@favware/skip-dependency@1.2.2'

/** Purpose of each decoder. */
const decodes = {
  '@audio/decode-aac': 'AAC in M4A, MP4, MOV, MKV, AVI and alone; also ALAC',
  '@audio/decode-ac3': 'AC-3',
  '@audio/decode-amr': 'AMR',
  '@audio/decode-avi': 'AVI (container)',
  '@audio/decode-caf': 'compressed CAF (ADPCM)',
  '@audio/decode-dts': 'DTS',
  '@audio/decode-eac3': 'E-AC-3',
  '@audio/decode-flac': 'FLAC in MKV and MP4; other FLAC is read by code of this package',
  '@audio/decode-mp3': 'MP3, MP2',
  '@audio/decode-mp4': 'MP4, MOV (container)',
  '@audio/decode-opus': 'Opus',
  '@audio/decode-tta': 'TTA',
  '@audio/decode-vorbis': 'Vorbis',
  '@audio/decode-wav': 'compressed WAV (ADPCM)',
  '@audio/decode-wavpack': 'WavPack',
  '@audio/decode-webm': 'WebM, MKV (container)',
  '@audio/decode-wma': 'WMA',
}

/** Code in a package whose licence its manifest does not name. */
const contains = {
  '@audio/decode-aac': 'FAAD2',
  '@audio/decode-flac': 'codec-parser (LGPL-3.0-or-later)',
  '@audio/decode-mp3': 'mpg123 (LGPL-2.1)',
  '@audio/decode-opus': 'libopus; codec-parser (LGPL-3.0-or-later)',
  '@audio/decode-vorbis': 'libvorbis; codec-parser (LGPL-3.0-or-later)',
  '@audio/decode-webm': 'codec-parser (LGPL-3.0-or-later)',
  'mpg123-decoder': 'mpg123 (LGPL-2.1)',
}

const manifestOf = (name) => JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8'))

/** The package and all its dependencies, direct and indirect. */
function closure(name, found = new Map()) {
  if (found.has(name)) return found
  const manifest = manifestOf(name)
  found.set(name, manifest)
  for (const dependency of Object.keys(manifest.dependencies ?? {})) closure(dependency, found)
  return found
}

/** Licences of third-party code inside a package, in files beside the package's own. */
function enclosed(name) {
  const files = existsSync(join(modules, name)) ? readdirSync(join(modules, name)) : []
  return files
    .filter((file) => /^LICEN[CS]E\./.test(file))
    .map((file) => file.replace(/^LICEN[CS]E\./, ''))
    .filter((part) => !/^(md|txt)$/.test(part))
}

const packages = [...closure('audio-decode').values()].sort((a, b) => (a.name < b.name ? -1 : 1))
const isCopyleft = ({ license }) => /GPL/.test(license)
const rows = packages.map(({ name, version, license }) => {
  const parts = [contains[name] ?? enclosed(name).join(', ')].filter(Boolean).join(', ')
  return (
    `| \`${name}\` | ${version.split('.').slice(0, 2).join('.')} | ${license} | ${parts} | ` +
    `${decodes[name] ?? ''} |`
  )
})
const left = packages.filter((each) => isCopyleft(each) && each.name in decodes).map(({ name }) => name)

console.log(`# Licences of the decoders

For people who distribute a program or an image: you will know the licence of each decoder, and how to leave one out.

This page is generated from the installed packages by \`scripts/licences.mjs\`. This package is MIT. The files of
\`dist/core/shared\` contain tsyringe (MIT), reflect-metadata (Apache-2.0) and tslib (0BSD), the WebAssembly build of
onnxruntime (MIT; its other file is in \`dist/core/models/session\`) and parts of mediabunny (MPL-2.0, unchanged). The
end of each file has the licences, or says what it is made of and where the source is.
\`models/basic-pitch\` is Spotify's network for notes (Apache-2.0), with its licence and
notice. The package decodes WAV, RF64, RIFX, Wave64, AIFF, AU, CAF and FLAC itself. For any other format,
it loads a package of [audio-decode](https://github.com/audiojs/decode) in the child process when the first file of that
format arrives. An application that only
uses a service over HTTP ships none of these packages; an image or a program that contains \`node_modules\` does.

| package | version | licence | contains | decodes |
| --- | --- | --- | --- | --- |
${rows.join('\n')}

## Leaving out GPL and LGPL decoders

Add this to the \`package.json\` of your application (not of a library) before you run \`npm install\`. It replaces the
decoders with an empty package (MIT), so that their code
is not downloaded. With pnpm, use \`pnpm.overrides\`; with Yarn, use \`resolutions\`.

\`\`\`json
${JSON.stringify({ overrides: Object.fromEntries(left.map((name) => [name, empty])) }, null, 2)}
\`\`\`

Jobs with AAC, ALAC, AC-3, E-AC-3, DTS or WMA then fail with \`unsupported_format\` and a message that says so, or use
ffmpeg if it is
[allowed](configuration.md) (\`decoders: { ffmpeg: true }\`, \`--ffmpeg\`). Everything else works as before.

The same works for any other package in the table. Replacing \`@audio/decode-mp3\` leaves out mpg123; replacing
\`@audio/decode-vorbis\`, \`@audio/decode-opus\`, \`@audio/decode-flac\`,
\`@audio/decode-webm\` and \`codec-parser\` leaves out codec-parser, and with it Ogg Vorbis, Opus, WebM and MKV.

ffmpeg is never part of this package. \`ffmpeg -L\` shows the licence of yours.`)
