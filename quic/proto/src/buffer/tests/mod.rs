mod range_set;
mod reassembler;
mod send_buffer;
mod unordered;
