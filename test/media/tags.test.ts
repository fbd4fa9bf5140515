import { spawnSync } from 'node:child_process'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { formatTable, type OutputFormat } from '../../src/core/media/encode/output-format.js'
import { encodePng } from '../../src/core/media/pictures/png.js'
import { type AudioTags, maxCoverBytes } from '../../src/core/media/tags/audio-tags.js'
import { id3Tag } from '../../src/core/media/tags/id3-writer.js'
import { readTags } from '../../src/core/media/tags/read-tags.js'
import { songName, songTags } from '../../src/core/media/tags/song-tags.js'
import { flacTagBlocks } from '../../src/core/media/tags/vorbis-comment-writer.js'
import { noise, readAudio } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()
let wav: string
let cover: Uint8Array
beforeAll(async () => {
  wav = await encoded('plain', '16', undefined)
  const picture = { width: 4, height: 2, opacity: new Uint8Array(8).fill(128), colour: [9, 99, 199] as const }
  cover = Uint8Array.from(encodePng(picture))
})

const audio = [noise(20_001, 1), noise(20_001, 2)]

async function encoded(name: string, format: OutputFormat, tags: AudioTags | undefined) {
  const path = join(folder, `${name}.${formatTable[format].extension}`)
  const encoder = await openEncoder(path, { sampleRate: 44_100, channels: 2, format, tags })
  await encoder.write(audio)
  expect((await encoder.close()).bytes).toBe((await readFile(path)).length)
  return path
}

const texts = {
  title: 'Ænima – 夜に駆ける "live" 🎵',
  artist: 'Sigur Rós',
  album: 'One / Two',
  track: '3/12',
  date: '2019-12-15',
  genre: 'Rock',
}

const programs = Object.fromEntries(
  ['ffmpeg', 'ffprobe', 'flac'].map((name) => [name, spawnSync(name, ['-version']).error === undefined]),
)
const hasFfmpeg = programs.ffmpeg && programs.ffprobe

function probe(path: string) {
  const args = ['-v', 'error', '-of', 'json', '-show_format', '-show_streams', path]
  const { stdout, stderr } = spawnSync('ffprobe', args, { encoding: 'utf8' })
  expect(stderr).toBe('')
  return JSON.parse(stdout) as { format: { tags?: Record<string, string> }; streams: { codec_name: string }[] }
}

describe.each(['flac', 'mp3', '16', '24', '32f', 'aiff', 'aiff24', 'aiff32f'] as const)(
  'tags in %s files',
  (format) => {
    it('are read back, and the audio is that of a file without them', async () => {
      const tags: AudioTags = { ...texts, cover: { contentType: 'image/png', bytes: cover } }
      const path = await encoded('tagged', format, tags)
      // ID3v2.3 stores only the year; a tag beside it gives the day.
      expect(await readTags(path)).toEqual({ ...tags, date: format === 'flac' ? texts.date : '2019' })
      const [found, plain] = [await readAudio(path), await readAudio(await encoded('untagged', format, undefined))]
      expect(found).toEqual(plain)
      if (format === '16') {
        const [tagged, without] = [await readFile(path), await readFile(wav)]
        const dataAt = without.indexOf('data')
        expect(tagged.subarray(dataAt, without.length).equals(without.subarray(dataAt))).toBe(true)
      }
    })

    it.skipIf(!hasFfmpeg)('are those that ffprobe shows, with the cover (skipped without ffmpeg)', async () => {
      const path = await encoded('probed', format, { ...texts, cover: { contentType: 'image/png', bytes: cover } })
      const { format: container, streams } = probe(path)
      const shown = Object.fromEntries(
        Object.entries(container.tags ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
      )
      expect(shown).toMatchObject({ title: texts.title, artist: texts.artist, album: texts.album, genre: texts.genre })
      expect(shown.track).toBe(texts.track)
      expect(shown.date).toMatch(/^2019/)
      if (format === 'flac' || format === 'mp3') expect(streams.map(({ codec_name }) => codec_name)).toContain('png')
    })
  },
)

it.skipIf(!programs.flac)(
  'a FLAC file with tags passes the test of the reference decoder (skipped without it)',
  async () => {
    const path = await encoded('tested', 'flac', { ...texts, cover: { contentType: 'image/png', bytes: cover } })
    expect(spawnSync('flac', ['-s', '-t', '-w', path], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
  },
)

describe.skipIf(!hasFfmpeg)('tags as ffmpeg writes them (skipped without ffmpeg)', () => {
  it.each([
    ['mp3', ['-id3v2_version', '3', '-write_id3v1', '1']],
    ['mp3', ['-id3v2_version', '4']],
    ['flac', []],
    ['m4a', []],
    ['m4a', ['-movflags', '+faststart']],
    ['ogg', ['-c:a', 'libvorbis']],
    ['opus', ['-c:a', 'libopus']],
    ['oga', ['-c:a', 'flac']],
    ['wav', []],
    ['aiff', ['-write_id3v2', '1']],
  ] as const)('are read from %s %j', async (extension, options) => {
    const path = join(folder, `theirs.${extension}`)
    const given = Object.entries(texts).flatMap(([name, value]) => ['-metadata', `${name}=${value}`])
    const { status, stderr } = spawnSync('ffmpeg', ['-v', 'error', '-y', '-i', wav, ...given, ...options, path], {
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, ''])
    const found = await readTags(path)
    expect(found).toMatchObject({ title: texts.title, artist: texts.artist, album: texts.album, genre: texts.genre })
    expect(found.track).toMatch(/^3/)
    expect(found.date).toMatch(/^2019/)
  })

  it.each(['mp3', 'flac', 'm4a'])('have the cover of %s', async (extension) => {
    const picture = join(folder, 'cover.png')
    await writeFile(picture, cover)
    const path = join(folder, `cover.${extension}`)
    const args = ['-v', 'error', '-y', '-i', wav, '-i', picture, '-map', '0:a', '-map', '1:v', '-c:v', 'copy']
    spawnSync('ffmpeg', [...args, '-disposition:v', 'attached_pic', path])
    expect((await readTags(path)).cover).toEqual({ contentType: 'image/png', bytes: cover })
  })
})

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

/** An Ogg page of segments of these lengths, without a checksum. */
function pageOf(lengths: readonly number[], content: Uint8Array): Buffer {
  const header = Buffer.alloc(27)
  header.write('OggS')
  header[26] = lengths.length
  return Buffer.concat([header, Buffer.from(lengths), content])
}

describe('untrusted tags', () => {
  const read = async (content: Uint8Array) => {
    const path = join(folder, 'hostile')
    await writeFile(path, content)
    return readTags(path)
  }

  it('lose control characters, marks of direction and what is too long', async () => {
    const title = `a\r\nSet-Cookie: x\u0000b\u202egpj.exe ${'é'.repeat(2000)}`
    const { title: found } = await read(id3Tag({ title }))
    expect(found).toMatch(/^a Set-Cookie: x, bgpj\.exe é+$/)
    expect(Array.from(found ?? '')).toHaveLength(500)
  })

  it('lose covers that are too large or not pictures', async () => {
    const large = new Uint8Array(maxCoverBytes + 1)
    large.set(cover)
    expect(await read(id3Tag({ title: 'x', cover: { contentType: 'image/png', bytes: large } }))).toEqual({
      title: 'x',
      largeCoverBytes: large.length,
    })
    const huge = new Uint8Array(10 * 1024 * 1024)
    huge.set(cover)
    expect(await read(id3Tag({ ...texts, cover: { contentType: 'image/png', bytes: huge } }))).toEqual({
      ...texts,
      date: '2019',
      largeCoverBytes: huge.length,
    })
    const page = Buffer.from('<html><script>')
    expect(await read(id3Tag({ title: 'x', cover: { contentType: 'image/png', bytes: page } }))).toEqual({ title: 'x' })
  })

  it('are found after a cover that lies on thousands of pages of an Ogg file', async () => {
    const bytes = new Uint8Array(maxCoverBytes)
    bytes.set(cover)
    const [, picture] = flacTagBlocks({ title: 'x', cover: { contentType: 'image/png', bytes } })
    const fields = [`METADATA_BLOCK_PICTURE=${Buffer.from(picture!.subarray(4)).toString('base64')}`, 'TITLE=x']
    const comments = fields.map((field) => Buffer.concat([uint32(field.length), Buffer.from(field)]))
    const packet = Buffer.concat([Buffer.from('OpusTags'), uint32(0), uint32(fields.length), ...comments])
    // Sixteen segments of 255 bytes a page.
    const pages: Buffer[] = []
    for (let at = 0; at < packet.length; at += 4080) {
      const part = packet.subarray(at, at + 4080)
      const lengths = Array.from({ length: 16 }, (_, i) => Math.min(255, Math.max(0, part.length - 255 * i)))
      pages.push(pageOf(lengths, part))
    }
    expect(pages.length).toBeGreaterThan(1000)
    const found = await read(Buffer.concat([pageOf([8], Buffer.from('OpusHead')), ...pages]))
    expect(found.title).toBe('x')
    expect(found.cover?.bytes.length).toBe(bytes.length)
  })

  it('keep all artists of an MP4 file', async () => {
    const box = (type: string, ...parts: Uint8Array[]) => {
      const content = Buffer.concat(parts)
      return Buffer.concat([uint32(8 + content.length).swap32(), Buffer.from(type, 'latin1'), content])
    }
    const data = (text: string) => box('data', Buffer.from([0, 0, 0, 1, 0, 0, 0, 0]), Buffer.from(text))
    const list = box('ilst', box('\xa9ART', data('One'), data('Zwölf')))
    const movie = box('moov', box('udta', box('meta', Buffer.alloc(4), list)))
    expect(await read(Buffer.concat([box('ftyp', Buffer.from('M4A ')), movie]))).toEqual({ artist: 'One, Zwölf' })
  })

  it('are ignored if lengths are wrong, in all formats, and wherever a file is cut off', async () => {
    const tags: AudioTags = { ...texts, cover: { contentType: 'image/png', bytes: cover } }
    for (const format of ['flac', 'mp3', '16'] as const) {
      const file = await readFile(await encoded('cut', format, tags))
      // Tags of WAV files are at the end.
      const from = format === '16' ? file.indexOf('LIST') : 0
      for (let at = from; at < from + 400; at += 7) {
        const broken = Uint8Array.from(file)
        broken.fill(0xff, at, at + 4)
        expect(Object.keys(texts).concat('cover')).toEqual(expect.arrayContaining(Object.keys(await read(broken))))
        await read(file.subarray(0, at))
      }
    }
  })

  it('cost no more than a bounded number of reads, however many headers there are', async () => {
    // Half a million empty chunks, and as many FLAC blocks.
    const chunks = Buffer.concat([Buffer.from('RIFF\xff\xff\xff\x7fWAVE', 'latin1'), Buffer.alloc(4_000_000)])
    const blocks = Buffer.concat([Buffer.from('fLaC'), Buffer.alloc(2_000_000, Buffer.from([1, 0, 0, 0]))])
    for (const content of [chunks, blocks]) {
      const path = join(folder, 'many')
      await writeFile(path, content)
      let reads = 0
      const handle = await open(path)
      const prototype = Object.getPrototypeOf(handle) as { read(...given: unknown[]): unknown }
      await handle.close()
      const { read: original } = prototype
      prototype.read = function (...given) {
        reads++
        return Reflect.apply(original, this, given)
      }
      try {
        expect(await readTags(path)).toEqual({})
      } finally {
        prototype.read = original
      }
      expect(reads).toBeGreaterThan(100)
      expect(reads).toBeLessThan(1100)
    }
  })

  it('are empty if the file does not exist', async () => {
    expect(await readTags(join(folder, 'missing'))).toEqual({})
  })
})

describe('the name of a song', () => {
  it.each([
    ['AC/DC: Back\\In <Black>', 'AC_DC_ Back_In _Black_'],
    ['  ..hidden..  ', 'hidden'],
    ['../../etc/passwd', '_.._etc_passwd'],
    ['tab\tand\r\nline', 'tab and line'],
    ['夜に駆ける', '夜に駆ける'],
    ['\u202egpj', 'gpj'],
    ['???', undefined],
    ['🎵'.repeat(100) + 'x', undefined],
  ])('%j is %j in a file name', (text, expected) => {
    expect(songName(text)).toBe(expected)
  })

  it('is cut off between characters', () => {
    const name = songName(`x${'é🎵'.repeat(100)}`) ?? ''
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(150)
    expect(Buffer.byteLength(name)).toBeGreaterThan(140)
    expect(name).not.toMatch(/\ufffd|\p{Cs}/u)
  })

  it('is the title, or else the name of the file; files without tags get none', async () => {
    const tagged = await encoded('named', 'flac', { title: 'Title', artist: 'Somebody' })
    const song = await songTags({ path: tagged, name: 'file.flac' })
    expect([song.song, song.ofStem('vocals')]).toEqual([
      'Title',
      { title: 'vocals (stems of Title)', artist: 'Somebody' },
    ])
    const untitled = await songTags({
      path: await encoded('untitled', 'flac', { artist: 'X' }),
      name: 'my song.v2.flac',
    })
    expect([untitled.song, untitled.ofStem('drums').title]).toEqual(['my song.v2', 'drums (stems of my song.v2)'])
    const plain = await songTags({ path: wav, name: 'plain.wav' })
    expect([plain.song, plain.ofStem('vocals')]).toEqual(['plain', {}])
    expect(await songTags({ path: wav })).toMatchObject({ song: undefined })
  })
})
