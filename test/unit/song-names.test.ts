import { expect, test } from 'vitest'
import { songName } from '../../src/http/storage/download-name.js'

test('the name of a song is a name of a file and of a folder on every system', () => {
  expect(songName('A song.wav')).toBe('A song')
  expect([null, '', '..', ' . '].map((name) => songName(name))).toEqual(['song', 'song', 'song', 'song'])
  expect(songName('a/b\\c:d*e?"f<g>h|i\u0000j')).toBe('a b c d e f g h i j')
  // Devices of Windows, with any ending.
  const devices = ['CON', 'aux.txt', 'nul', 'Com1', 'lpt9.tar.gz', 'prn .x', 'COM²']
  expect(devices.map((name) => songName(name))).toEqual([
    'CON_',
    'aux_.txt',
    'nul_',
    'Com1_',
    'lpt9_.tar.gz',
    'prn_ .x',
    'COM²_',
  ])
  expect(['Concert', 'auxiliary.wav', 'Com10', 'My con'].map((name) => songName(name))).toEqual([
    'Concert',
    'auxiliary',
    'Com10',
    'My con',
  ])
})

test('neither half an emoji nor a turn of direction is in the name of a song', () => {
  expect(songName('Song \ud83d')).toBe('Song')
  expect(songName('Song \ud83c\udfb5')).toBe('Song \ud83c\udfb5')
  expect(songName('song\u202egpj.exe')).toBe('song gpj.exe')
})
