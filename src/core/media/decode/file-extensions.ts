/** Usual endings of the names of files that the package decodes itself. */
const own =
  '3gp aac ac3 aif aifc aiff amr au avi caf dts eac3 flac m2ts m4a m4b m4v mka mkv mov mp3 mp4 mts oga ogg opus snd ' +
  'ts tta w64 wav webm wma wv'
/** Of those that ffmpeg has to decode. */
const foreign = 'ape dff dsf flv mpc mpeg mpg mxf ogv ra rm tak thd vob voc wmv'

/** Endings that clients may offer to their users. The content decides: a file of another name is read as well. */
export function fileExtensions(hasFfmpeg: boolean): string[] {
  return [...own.split(' '), ...(hasFfmpeg ? foreign.split(' ') : [])]
}
