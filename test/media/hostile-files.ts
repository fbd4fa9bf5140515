import { readFile } from 'node:fs/promises'
import { oggPage } from './ogg-file.js'
import { fixture } from './test-signal.js'

/** Files with false headers, as made by an attacker or a broken disk. */
export async function hostileFiles(): Promise<[name: string, bytes: Buffer][]> {
  const m4a = await readFile(fixture('faststart.m4a'))
  const fragmented = await readFile(fixture('fragmented.m4a'))
  const flac = await readFile(fixture('stereo.flac'))
  return [
    ...mp4Tables(m4a),
    ...mp4Structure(m4a, fragmented),
    ...chunkFiles(),
    ...flacFiles(flac),
    ...oggFiles(),
    ...(await headers()),
  ]
}

const most = 0xffff_ffff

function times(count: number, bytes: Buffer): Buffer {
  return Buffer.alloc(count * bytes.length, bytes)
}

function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, index) => bytes.writeUInt32BE(value, index * 4))
  return bytes
}

function u32le(...values: number[]): Buffer {
  return Buffer.from(u32(...values)).swap32()
}

function box(type: string, ...parts: Buffer[]): Buffer {
  return Buffer.concat([u32(8 + parts.reduce((sum, { length }) => sum + length, 0)), Buffer.from(type), ...parts])
}

/** The file with `bytes` at `offset` after the name of the first box of that type. */
function patched(file: Buffer, type: string, offset: number, bytes: Buffer): Buffer {
  const copy = Buffer.from(file)
  const at = copy.indexOf(type, 0, 'latin1')
  if (at < 0) throw new Error(`the fixture has no ${type}`)
  bytes.copy(copy, at + offset)
  return copy
}

function mp4Tables(m4a: Buffer): [string, Buffer][] {
  return [
    ['stsz with 2^32 entries', patched(m4a, 'stsz', 12, u32(most))],
    ['stsz with 2^32 samples of one byte', patched(m4a, 'stsz', 8, u32(1, most))],
    ['stsz with 2^32 samples of 4 GiB', patched(m4a, 'stsz', 8, u32(most, most))],
    ['stsz with a sample of 4 GiB', patched(m4a, 'stsz', 16, u32(most))],
    ['stsz with no samples', patched(m4a, 'stsz', 12, u32(0))],
    ['stsc with 2^32 entries', patched(m4a, 'stsc', 8, u32(most))],
    ['stsc with 2^32 samples in a chunk', patched(m4a, 'stsc', 16, u32(most))],
    ['stsc that begins at chunk 2^32', patched(m4a, 'stsc', 12, u32(most))],
    ['stco with 2^32 entries', patched(m4a, 'stco', 8, u32(most))],
    ['stco that points past the end', patched(m4a, 'stco', 12, u32(most))],
    ['stco that points to the index', patched(m4a, 'stco', 12, u32(0))],
    ['stts with 2^32 entries', patched(m4a, 'stts', 8, u32(most))],
    ['elst with 2^32 entries', patched(m4a, 'elst', 8, u32(most))],
    ['ctts with 2^32 entries', patched(m4a, 'stts', 0, Buffer.from('ctts\0\0\0\0\xff\xff\xff\xff', 'latin1'))],
    ['stsd with 2^32 entries', patched(m4a, 'stsd', 8, u32(most))],
    ['a sample description of 4 GiB', patched(m4a, 'stsd', 12, u32(most))],
    ['a decoder configuration of 256 MiB', patched(m4a, 'esds', 8, Buffer.from('03ffffff7f', 'hex'))],
    ['a timescale of 0', patched(m4a, 'mdhd', 16, u32(0))],
    ['a duration of 2^32 - 2', patched(m4a, 'mdhd', 20, u32(most - 1))],
    ['an index of 4 GiB', patched(m4a, 'moov', -4, u32(most))],
    ['an index without a length', patched(m4a, 'moov', -4, u32(0))],
    ['an index of 7 bytes', patched(m4a, 'moov', -4, u32(7))],
  ]
}

const start = box('ftyp', Buffer.from('M4A \0\0\0\0', 'latin1'))

function nested(type: string, depth: number): Buffer {
  const bytes = Buffer.alloc(depth * 8)
  for (let level = 0; level < depth; level++) {
    bytes.writeUInt32BE((depth - level) * 8, level * 8)
    bytes.write(type, level * 8 + 4, 'latin1')
  }
  return bytes
}

function mp4Structure(m4a: Buffer, fragmented: Buffer): [string, Buffer][] {
  const deep = nested('wave', 20_000)
  const description = m4a.indexOf('stsd', 0, 'latin1')
  const handler = box('hdlr', u32(0, 0), Buffer.from('soun'), Buffer.alloc(13))
  const trackOf = (...table: Buffer[]) =>
    box('moov', box('trak', box('mdia', handler, box('minf', box('stbl', ...table)))))
  const entry = m4a.subarray(description - 4, description - 4 + m4a.readUInt32BE(description - 4))
  return [
    ['tracks 20,000 deep', Buffer.concat([start, box('moov', nested('trak', 20_000))])],
    ['containers 20,000 deep', Buffer.concat([start, box('moov', box('trak', nested('mdia', 20_000)))])],
    [
      'a description 20,000 deep',
      Buffer.concat([
        start,
        trackOf(box('stsd', u32(0, 1), box('mp4a', Buffer.alloc(28), deep)), stszOf(1), stcoOf([0])),
      ]),
    ],
    ['a million boxes', Buffer.concat([start, times(1_000_000, box('free'))])],
    ['an index of 500,000 boxes', Buffer.concat([start, box('moov', times(500_000, box('free')))])],
    ['10,000 tracks', Buffer.concat([start, box('moov', times(10_000, box('trak')))])],
    [
      'a hundred thousand samples in one place',
      Buffer.concat([start, trackOf(entry, stszOf(100_000, 2000), stcoOf(Array<number>(100_000).fill(40)))]),
    ],
    ['trun with 2^32 entries', patched(fragmented, 'trun', 8, u32(most))],
    [
      'trun with 2^32 entries without sizes',
      patched(fragmented, 'trun', 5, Buffer.from([0, 0, 1, 255, 255, 255, 255])),
    ],
    ['trun with a sample of 4 GiB', patched(fragmented, 'trun', 16, u32(most, most, most))],
    ['a fragment of 4 GiB', patched(fragmented, 'moof', -4, u32(most))],
    ['a million fragments', Buffer.concat([fragmented, times(1_000_000, box('moof'))])],
  ]
}

function stszOf(count: number, bytes = 4): Buffer {
  return box('stsz', u32(0, bytes, count))
}

function stcoOf(offsets: readonly number[]): Buffer {
  return box('stco', u32(0, offsets.length), Buffer.concat(offsets.map((offset) => u32(offset))))
}

function wavChunk(id: string, ...body: Buffer[]): Buffer {
  const content = Buffer.concat(body)
  return Buffer.concat([Buffer.from(id), u32le(content.length), content])
}

function wav(...chunks: Buffer[]): Buffer {
  return wavChunk('RIFF', Buffer.from('WAVE'), ...chunks)
}

/** A WAV format chunk: tag, channels, rate, block size, bits. */
function wavFormat(...[tag, channels, rate, block, bits]: number[]): Buffer {
  const body = Buffer.alloc(16)
  body.writeUInt16LE(tag!, 0)
  body.writeUInt16LE(channels!, 2)
  body.writeUInt32LE(rate!, 4)
  body.writeUInt16LE(block!, 12)
  body.writeUInt16LE(bits!, 14)
  return wavChunk('fmt ', body)
}

function chunkFiles(): [string, Buffer][] {
  const data = wavChunk('data', Buffer.alloc(4000, 1))
  const form = (...parts: Buffer[]) => Buffer.concat([Buffer.from('FORM\0\0\0\0AIFC', 'latin1'), ...parts])
  const common = (channels: number, exponent: number) =>
    Buffer.concat([
      Buffer.from('COMM'),
      u32(18),
      Buffer.from([channels >> 8, channels & 255]),
      u32(most),
      Buffer.from([0, 16, exponent >> 8, exponent & 255]),
      u32(most, 0),
    ])
  const sound = (offset: number) => Buffer.concat([Buffer.from('SSND'), u32(4008, offset, 0), Buffer.alloc(4000, 1)])
  return [
    ['a million chunks before a WAV', wav(times(1_000_000, wavChunk('junk')), wavFormat(1, 2, 44_100, 4, 16), data)],
    ['a WAV with 65,535 channels', wav(wavFormat(1, 65_535, 44_100, 65_535, 16), data)],
    ['a WAV with blocks of 0', wav(wavFormat(1, 2, 44_100, 0, 0), data)],
    ['a WAV at 4 GHz', wav(wavFormat(1, 2, most, 4, 16), data)],
    ['an ADPCM WAV with blocks of 0', wav(wavFormat(2, 2, 44_100, 0, 4), data)],
    ['an ADPCM WAV with 65,535-byte blocks', wav(wavFormat(17, 1, 8000, 65_535, 4), data)],
    ['a WAV whose format is 4 GiB long', wav(Buffer.concat([Buffer.from('fmt '), u32le(most), Buffer.alloc(40)]))],
    ['a WAV of NaN', wav(wavFormat(3, 2, 44_100, 8, 32), wavChunk('data', Buffer.alloc(8000, 0xff)))],
    [
      'an RF64 of 2^64 bytes',
      Buffer.concat([
        Buffer.from('RF64\xff\xff\xff\xffWAVE', 'latin1'),
        wavChunk('ds64', Buffer.alloc(28, 0xff)),
        wavFormat(1, 2, 44_100, 4, 16),
        data,
      ]),
    ],
    [
      'a Wave64 with a chunk of size 0',
      Buffer.concat([
        Buffer.from('riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\0\0', 'latin1'),
        Buffer.alloc(8),
        Buffer.from('wave'),
        Buffer.alloc(4012),
      ]),
    ],
    ['a million chunks before an AIFF', form(times(1_000_000, Buffer.from('NAME\0\0\0\0', 'latin1')))],
    ['an AIFF with 65,535 channels', form(common(65_535, 0x400e), sound(0))],
    ['an AIFF at 2^16384 Hz', form(common(2, 0x7fff), sound(0))],
    ['an AIFF at 0 Hz', form(common(2, 0), sound(0))],
    ['an AIFF whose sound begins past the end', form(common(2, 0x400e), sound(most))],
    ['an AU that begins past the end', Buffer.concat([Buffer.from('.snd'), u32(most, most, 3, 44_100, 2)])],
    ['3 MB of ID3 tags', times(300_000, Buffer.from('ID3\x03\0\0\0\0\0\0', 'latin1'))],
    ['an ID3 tag of 256 MB', Buffer.from('ID3\x03\0\0\x7f\x7f\x7f\x7f', 'latin1')],
  ]
}

function flacFiles(flac: Buffer): [string, Buffer][] {
  const info = flac.subarray(0, 42)
  const open = Buffer.from(info)
  open[4] = 0
  // A frame header of 65,536 samples in eight channels with a correct checksum, followed by nothing that fits.
  const header = Buffer.from('fff8797800ffff00', 'hex')
  header[7] = crc8(header.subarray(0, 7))
  const closed = Buffer.from(info)
  closed[4] = 0x80
  return [
    ['a million FLAC metadata blocks', Buffer.concat([open, times(1_000_000, Buffer.from([1, 0, 0, 0]))])],
    ['a hundred thousand false FLAC frames', Buffer.concat([closed, times(100_000, header)])],
    ['a FLAC of 2^36 samples', patched(flac, 'fLaC', 21, Buffer.from([0xff, ...u32(most)]))],
    ['a FLAC at 0 Hz', patched(flac, 'fLaC', 18, Buffer.from([0, 0, 0]))],
    ['a FLAC with blocks of 0', patched(flac, 'fLaC', 8, u32(0))],
  ]
}

function crc8(bytes: Buffer): number {
  let sum = 0
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = (sum & 0x80 ? (sum << 1) ^ 0x07 : sum << 1) & 0xff
  }
  return sum
}

function oggFiles(): [string, Buffer][] {
  const vorbis = Buffer.concat([
    Buffer.from('\x01vorbis\0\0\0\0\x02', 'latin1'),
    u32le(44_100, 0, 0, 0),
    Buffer.from([0xb8, 1]),
  ])
  const opus = Buffer.concat([
    Buffer.from('OpusHead\x01\xff\0\0', 'latin1'),
    u32le(48_000),
    Buffer.from([0, 0, 1, 255, 255]),
    Buffer.alloc(255, 255),
  ])
  const tags = Buffer.concat([Buffer.from('OpusTags'), u32le(most, most)])
  const noise = Buffer.from(Array.from({ length: 3000 }, (_, index) => (index * 7919) & 255))
  const setup = Buffer.concat([Buffer.from('\x05vorbis', 'latin1'), noise])
  const claim = Buffer.alloc(300)
  claim.write('OggS')
  claim.fill(255, 26, 282)
  return [
    ['3 MB of pages that overlap', Buffer.concat([oggPage([vorbis], { sequence: 0, flags: 2 }), times(10_000, claim)])],
    [
      'a Vorbis stream with a setup of noise',
      Buffer.concat([
        oggPage([vorbis], { sequence: 0, flags: 2 }),
        oggPage([Buffer.from('\x03vorbis', 'latin1'), setup], { sequence: 1 }),
        oggPage([noise, noise], { sequence: 2, granule: 2048n }),
      ]),
    ],
    [
      'an Opus stream with 255 channels',
      Buffer.concat([
        oggPage([opus], { sequence: 0, flags: 2 }),
        oggPage([tags], { sequence: 1 }),
        oggPage([noise], { sequence: 2, granule: 960n }),
      ]),
    ],
    [
      'an Opus stream that ends at sample 2^63',
      Buffer.concat([
        oggPage([opus.subarray(0, 19)], { sequence: 0, flags: 2 }),
        oggPage([tags], { sequence: 1 }),
        oggPage([noise], { sequence: 2, granule: 2n ** 63n - 1n, flags: 4 }),
      ]),
    ],
  ]
}

async function headers(): Promise<[string, Buffer][]> {
  const mkv = await readFile(fixture('video.mkv'))
  const avi = await readFile(fixture('video.avi'))
  const tta = await readFile(fixture('stereo.tta'))
  const wv = await readFile(fixture('mono.wv'))
  const caf = await readFile(fixture('stereo.caf'))
  const wma = await readFile(fixture('stereo.wma'))
  const cluster = mkv.indexOf(Buffer.from('1f43b675', 'hex'))
  return [
    [
      'a Matroska cluster of 2^56 bytes',
      Buffer.concat([
        mkv.subarray(0, cluster + 4),
        Buffer.from('01fffffffffffffe', 'hex'),
        Buffer.alloc(8_000_000, 0xa3),
      ]),
    ],
    [
      'Matroska elements 10,000 deep',
      Buffer.concat([mkv.subarray(0, cluster), times(10_000, Buffer.from('a0ff', 'hex'))]),
    ],
    [
      'an AVI chunk of 4 GiB',
      Buffer.concat([
        avi.subarray(0, avi.indexOf('movi') + 4),
        Buffer.from('01wb'),
        u32le(most),
        Buffer.alloc(8_000_000),
      ]),
    ],
    [
      'an AVI with 8 MB of empty lists',
      Buffer.concat([avi.subarray(0, 12), times(600_000, wavChunk('LIST', Buffer.from('rec ')))]),
    ],
    ['a TTA of 2^32 samples', patched(tta, 'TTA1', 14, u32le(most))],
    ['a WavPack block of 16 MB', patched(wv, 'wvpk', 4, u32le(16_000_000))],
    ['a WavPack block of 2^32 samples', patched(wv, 'wvpk', 20, u32le(most))],
    ['a CAF with 2^32 channels', patched(caf, 'desc', 36, u32(most))],
    ['a CAF chunk of 2^63 bytes', patched(caf, 'desc', 4, u32(0x7fff_ffff, most))],
    ['an ASF object of 2^63 bytes', Buffer.concat([wma.subarray(0, 46), u32le(most, 0x7fff_ffff), wma.subarray(54)])],
    ['an MP3 of 2^32 frames', patchedMp3(await readFile(fixture('stereo.mp3')))],
  ]
}

function patchedMp3(mp3: Buffer): Buffer {
  const tag = /Xing|Info/.exec(mp3.toString('latin1', 0, 2000))?.[0] ?? ''
  return patched(mp3, tag, 8, u32(most))
}
