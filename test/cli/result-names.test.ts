import { basename } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CommandInput } from '../../src/cli/command.js'
import { fileNames, NameTemplate, sameNameKey, type SongNames } from '../../src/cli/files/result-names.js'
import { songPlaces } from '../../src/cli/files/separation-request.js'

const song = (song: Partial<SongNames> = {}): SongNames => ({ tags: {}, file: 'take 1', folder: '', ...song })
const named = (template: string, names: Partial<SongNames> = {}) =>
  new NameTemplate(template).pathOf(song(names), 'vocals')

describe('names of results', () => {
  it('have the fields of the song and of its file', () => {
    const tags = {
      artist: 'Sigur Rós',
      title: 'Untitled',
      album: '( )',
      track: '3/8',
      date: '2002-10-28',
      genre: 'Rock',
    }
    expect(named('{artist}/{year} {album}/{track} {title} - {stem}', { tags })).toBe(
      'Sigur Rós/2002 ( )/03 Untitled - vocals',
    )
    expect(named('{folder}/{file} - {stem}', { folder: 'A/B' })).toBe('A/B/take 1 - vocals')
    expect(named('{folder}/{file} - {stem}')).toBe('take 1 - vocals')
    expect(named('{artist}/{title} - {stem}')).toBe('Unknown artist/take 1 - vocals')
  })

  it.each([
    ['AC/DC', 'AC_DC - vocals'],
    ['../../etc/passwd', '_.._etc_passwd - vocals'],
    ['..', '- vocals'],
    ['a:b*c?"<d>|e\\f', 'a_b_c_d_e_f - vocals'],
    ['new\nline\u0000\u202Eleft', 'new line left - vocals'],
    ['Cafe\u0301', 'Café - vocals'],
  ])('are safe on every file system: %j', (title, expected) => {
    expect(named('{title} - {stem}', { tags: { title } })).toBe(expected)
  })

  it.each([
    ['{stem}/{title}-{stem}', 'con', 'vocals/con-vocals'],
    ['{title}/{stem}', 'CON', '_CON/vocals'],
    ['{title}/{stem}', 'aux.demo', '_aux.demo/vocals'],
    ['{title}/{stem}', 'Contra', 'Contra/vocals'],
    ['{title}/{stem}', '...', '_/vocals'],
    ['{title}/{stem}', 'Live. ', 'Live/vocals'],
  ])('have no folder that Windows refuses: %s of %j', (template, title, expected) => {
    expect(named(template, { tags: { title } })).toBe(expected)
  })

  it('are short enough, and keep the stem', () => {
    const tags = { artist: '夜'.repeat(160), title: '🎵'.repeat(120) }
    const [folder, file] = named('{artist}/{artist} {title} - {stem}', { tags }).split('/')
    for (const part of [folder!, file!]) expect(Buffer.byteLength(part)).toBeLessThanOrEqual(220)
    expect(file).toMatch(/ - vocals$/)
    expect(file).not.toContain('\uFFFD')
  })

  it('are those of the folder of one song, wherever it comes from and however long its name is', () => {
    const places = (source: string) => songPlaces(new CommandInput({}, [source]), source, 'stems')
    expect(basename(places('https://example.org/a/Beyonc%C3%A9%20(live).mp3?x=1').folder)).toBe('Beyoncé (live)-stems')
    expect(basename(places('https://example.org/').folder)).toBe('song-stems')
    expect(basename(places(`${'y'.repeat(251)}.mp3`).folder)).toBe(`${'y'.repeat(220)}-stems`)
  })

  it.each([
    ['{folder}/{file} - {stem}', ['x', 'x.flac', 'x.wav', 'x', 'solo']],
    ['{file} - {stem}', ['x.mp3', 'a_x.flac', 'x.wav', 'b_x.flac', 'solo']],
    ['{artist}/{stem}', ['c_x.mp3', 'a_x.flac', 'a_x.wav', 'b_x.flac', 'b_solo.wav']],
  ])('tell files of one name apart by ending and folder where they need it: %s', (template, expected) => {
    const input = (path: string) => ({ path, folder: path.split('/').at(-2)! })
    const inputs = ['/c/x.mp3', '/a/x.flac', '/a/x.wav', '/b/x.flac', '/b/solo.wav'].map(input)
    const names = fileNames(inputs, new NameTemplate(template))
    expect(inputs.map(({ path }) => names.get(path))).toEqual(expected)
  })

  it('are known to be the same on systems that ignore case and composition', () => {
    expect(sameNameKey('CAFE\u0301/Straße.wav')).toBe(sameNameKey('café/STRASSE.wav'))
    expect(sameNameKey('a.wav')).not.toBe(sameNameKey('b.wav'))
  })
})
